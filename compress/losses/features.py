"""Names of features, by which a loss requests tensors of a model; built and parsed only here.

`models.features.named` documents each, with its shape.
"""

import re

FeatureKey = tuple[str, int]  # a kind of feature, and a layer counted from 0

LOGITS, EMBEDDINGS, POOLED, WORDS = "logits", "embeddings", "pooled", "words"
TOKEN_SCORES = "token_scores"  # output of a masked-LM head on the last hidden states, computed by the objective
HIDDEN = "hidden"
ATTENTION = ("scores", "weights", "queries", "keys", "values")

_KEYS: dict[str, FeatureKey] = {LOGITS: (LOGITS, 0), EMBEDDINGS: (HIDDEN, 0), POOLED: (POOLED, 0)}
_INDEXED = re.compile(rf"({HIDDEN}|{'|'.join(ATTENTION)})\[(-?\d+)\]")


def hidden(layer: int) -> str:
    """Return the name of the states after `layer` layers; 0 are the embeddings, -1 the states after the last."""
    return f"{HIDDEN}[{layer}]"


def attention(kind: str, layer: int) -> str:
    """Return the name of one of `ATTENTION` in a layer counted from 0; -1 is the last."""
    return f"{kind}[{layer}]"


LAST_HIDDEN = hidden(-1)
BEFORE_LAYERS = frozenset({EMBEDDINGS, hidden(0)})  # these need no layer to run


def parse(name: str, layers: int) -> FeatureKey | None:
    """Return where the feature is in a model of `layers` layers; None if there is no such feature."""
    if name in _KEYS:
        return _KEYS[name]
    match = _INDEXED.fullmatch(name)
    if match is None:
        return None
    count = layers + 1 if match[1] == HIDDEN else layers
    index = int(match[2])
    return (match[1], index % count) if -count <= index < count else None
