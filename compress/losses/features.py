"""The names of features, by which a loss asks a model for tensors: built and parsed here alone.

`models.features` says what each is, with its shape.
"""

import re

Place = tuple[str, int]  # a kind of feature, and a layer counted from 0

LOGITS, EMBEDDINGS, POOLED, WORDS = "logits", "embeddings", "pooled", "words"
TOKEN_SCORES = "token_scores"  # what a masked-LM head makes of the last hidden states: the objective's own
HIDDEN = "hidden"
ATTENTION = ("scores", "weights", "queries", "keys", "values")

_PLACES: dict[str, Place] = {LOGITS: (LOGITS, 0), EMBEDDINGS: (HIDDEN, 0), POOLED: (POOLED, 0)}
_INDEXED = re.compile(rf"({HIDDEN}|{'|'.join(ATTENTION)})\[(-?\d+)\]")


def hidden(layer: int) -> str:
    """The states after so many layers; 0 are the embeddings, -1 those after the last."""
    return f"{HIDDEN}[{layer}]"


def attention(kind: str, layer: int) -> str:
    """One of `ATTENTION` in a layer counted from 0; -1 is the last."""
    return f"{kind}[{layer}]"


LAST_HIDDEN = hidden(-1)
BEFORE_LAYERS = frozenset({EMBEDDINGS, hidden(0)})  # no layer is run for these


def parse(name: str, layers: int) -> Place | None:
    """Where in a model of so many layers the feature is; None where it has no such feature."""
    if name in _PLACES:
        return _PLACES[name]
    match = _INDEXED.fullmatch(name)
    if match is None:
        return None
    count = layers + 1 if match[1] == HIDDEN else layers
    index = int(match[2])
    return (match[1], index % count) if -count <= index < count else None
