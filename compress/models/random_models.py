"""Models that begin with random weights: their config, a classifier and an encoder. torch's global seed decides the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..corpus import SpecialIds
from ..corpus.vocabulary import BERT, ROBERTA
from ..errors import CompressError
from ..spec.cards import RandomInit
from .checkpoints import label_fields

if TYPE_CHECKING:
    from torch import nn

_OF_SMALL = ("hidden_act", "layer_norm_eps")
_EMBEDDING = 128  # ALBERT's E, of all its published sizes
# Of the embedded tasks' words, where a card names no tokenizer.
_WORDPIECE = SpecialIds(*map(BERT.index, ("[CLS]", "[SEP]", "[PAD]", "[MASK]")), every=())
_BYTES = SpecialIds(*map(ROBERTA.index, ("<s>", "</s>", "<pad>", "<mask>")), every=())


def random_config(
    init: RandomInit,
    *,
    vocabulary: int | None = None,
    special: SpecialIds | None = None,
    small: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """config.json of a model with `init`'s dimensions, `vocabulary` tokens (default: as it says) and the `special` ones
    (default: of the embedded tasks' words). What is not a size is as in `small`, the config that a BERT grows from, and so
    are its tables of tokens and segments. Raises `CompressError` for a `roberta` without padding: it counts from there."""
    special = special or (_BYTES if init.architecture == "roberta" else _WORDPIECE)
    config: dict[str, Any] = {
        "model_type": init.architecture,
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
    own = {"bert": _bert, "roberta": _roberta, "albert": _albert}[init.architecture]
    return own(init, config, special, small or {})


def _bert(init: RandomInit, config: dict[str, Any], special: SpecialIds, small: dict[str, Any]) -> dict[str, Any]:
    if not small:
        return config
    tables = {
        "vocab_size": small["vocab_size"],
        "type_vocab_size": small.get("type_vocab_size", 2),
        "pad_token_id": small.get("pad_token_id", 0),
    }
    return {name: small[name] for name in _OF_SMALL if name in small} | config | tables


def _roberta(init: RandomInit, config: dict[str, Any], special: SpecialIds, small: dict[str, Any]) -> dict[str, Any]:
    """Liu et al. 2019, arXiv:1907.11692. Positions are counted from the row after padding's; no segments."""
    if special.pad is None:
        raise CompressError("random.tokenizer: a roberta needs a padding token, which this one has not: <pad> or [PAD]")
    return config | {
        "max_position_embeddings": init.max_positions + special.pad + 1,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "bos_token_id": special.cls,
        "eos_token_id": special.sep,
    }


def _albert(init: RandomInit, config: dict[str, Any], special: SpecialIds, small: dict[str, Any]) -> dict[str, Any]:
    """Lan et al. 2020, arXiv:1909.11942, §3.1: one block for all layers, GELU by tanh."""
    return config | {
        "embedding_size": init.embedding or _EMBEDDING,
        "num_hidden_groups": 1,
        "inner_group_num": 1,
        "hidden_act": "gelu_new",
        "classifier_dropout_prob": init.dropout,
        "bos_token_id": special.cls,
        "eos_token_id": special.sep,
    }


def random_classifier(config: dict[str, Any], *, labels: tuple[str, ...]) -> nn.Module:
    """A classifier of `random_config`."""
    from transformers import AutoModelForSequenceClassification

    return AutoModelForSequenceClassification.from_config(_config({**config, **label_fields(labels)}))


def random_encoder(config: dict[str, Any]) -> nn.Module:
    """As `random_classifier`, without a head; attention as `load_encoder` has it."""
    from transformers import AutoModel

    return AutoModel.from_config(_config(config), attn_implementation="sdpa")


def _config(fields: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    return AutoConfig.for_model(**fields)
