"""Models with random weights: their config, a classifier and an encoder. torch's global seed decides the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..corpus.vocabulary import BERT, ROBERTA
from ..spec.kinds import KindName
from ..tokenization.special import SpecialIds
from .cards import RandomInit
from .checkpoints.folders import label_fields
from .checkpoints.pretrained import transformers_config
from .families import FAMILIES
from .heads import HEADS, model_from
from .sentence_encoders.pooling import FIELD

if TYPE_CHECKING:
    from torch import nn

_OF_SMALL = ("hidden_act", "layer_norm_eps")
# For the vocabulary of the embedded tasks, if a card names no tokenizer.
_WORDPIECE = SpecialIds(*map(BERT.index, ("[CLS]", "[SEP]", "[PAD]", "[MASK]")), every=())
_BYTES = SpecialIds(*map(ROBERTA.index, ("<s>", "</s>", "<pad>", "<mask>")), every=())


def random_config(
    init: RandomInit,
    *,
    vocabulary: int | None = None,
    special: SpecialIds | None = None,
    small: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return config.json of a model with `init`'s dimensions, `vocabulary` tokens (default: `init.vocabulary`) and the `special` tokens
    (default: those of the embedded tasks' vocabulary). `small`: the config of the model to grow from, which gives the token and segment
    tables, the activation and LayerNorm's epsilon. Raises `CompressError` for a tokenizer that the family cannot have."""
    family = FAMILIES[init.architecture]
    special = special or (_BYTES if family.random.byte_level else _WORDPIECE)
    config: dict[str, Any] = {
        "model_type": family.name,
        "vocab_size": vocabulary or init.vocabulary,
        "hidden_size": init.hidden,
        "num_hidden_layers": init.layers,
        "num_attention_heads": init.heads,
        "intermediate_size": init.intermediate,
        "max_position_embeddings": init.max_positions,
        "type_vocab_size": 2,
        "hidden_dropout_prob": init.dropout,
        "attention_probs_dropout_prob": init.dropout,
        "pad_token_id": special.pad,
    }
    if init.embedding is not None:
        config["embedding_size"] = init.embedding
    if family.random.config is None:
        raise RuntimeError(f"no card describes a {family.name} with random weights")
    return family.random.config(_with_tables_of(small, config) if small else config, special)


def _with_tables_of(small: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return `config` with the activation, LayerNorm's epsilon, and token and segment tables of `small`."""
    tables = {
        "vocab_size": small["vocab_size"],
        "type_vocab_size": small.get("type_vocab_size", 2),
        "pad_token_id": small.get("pad_token_id", 0),
    }
    return {name: small[name] for name in _OF_SMALL if name in small} | config | tables


def random_classifier(config: dict[str, Any], *, kind: KindName, labels: tuple[str, ...]) -> nn.Module:
    """Return a model of a `random_config` with a head for tasks of `kind` and the label names `labels`."""
    fields = {**config, **({FIELD: "mean"} if HEADS[kind].bare else label_fields(kind, labels))}
    return model_from(HEADS[kind], transformers_config(fields))


def random_encoder(config: dict[str, Any]) -> nn.Module:
    """Like `random_classifier`, without a head; attention as in `load_encoder`."""
    from transformers import AutoModel

    attention = FAMILIES[config["model_type"]].attention.implementation
    return AutoModel.from_config(transformers_config(config), attn_implementation=attention)
