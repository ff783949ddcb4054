"""What a key of a checkpoint's JSON may hold, and the config.json keys that all families share."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import CompressError
from ...runtime.passages import MOST_THRESHOLD, THRESHOLD

# Far beyond any published encoder, and small enough to compute with.
MOST_LAYERS, MOST_HEADS, MOST_WIDE, MOST_TOKENS, MOST_POSITIONS = 1024, 4096, 1 << 17, 1 << 24, 1 << 20
MOST_CLASSES = 100_000
# Functions without weights, under transformers' names.
ACTIVATIONS = (
    "gelu", "gelu_10", "gelu_accurate", "gelu_fast", "gelu_new", "gelu_python", "gelu_python_tanh", "gelu_pytorch_tanh",
    "hardswish", "laplace", "leaky_relu", "linear", "mish", "quick_gelu", "relu", "relu2", "relu6", "sigmoid", "silu",
    "swish", "tanh",
)  # fmt: skip
TOKENIZER_CLASS = "tokenizer_class"  # models ignore it
_ROUNDING = 1e-4  # tolerance for a sum of weights
PROBLEMS = ("regression", "single_label_classification", "multi_label_classification")


@dataclass(frozen=True)
class Field:
    """What a key may hold. `null` counts as a missing key unless `nullable`. If not `kept`, the value is only checked, because any other
    means another model. `required` keys occur in every file of a supported form; without them, transformers assumes another form."""

    allows: Callable[[Any], bool]
    expected: str
    nullable: bool = False
    kept: bool = True
    required: bool = False


def allowed_values(
    path: Path, document: Mapping[str, Any], fields: Mapping[str, Field], *, inside: str = ""
) -> dict[str, Any]:
    """Return the part of `document` that `fields` names, unchanged; `inside`: prefix of its keys in messages.

    Raises `CompressError` naming the file and the key, for a value that its key cannot have.
    """
    kept = {}
    for name, field in fields.items():
        value = document.get(name)
        if value is None and not field.required and not (field.nullable and name in document):
            continue
        if (value is not None or field.required) and not field.allows(value):
            raise CompressError(f"{path}: {inside}{name}: expected {field.expected}; found {reprlib.repr(value)}")
        if field.kept:
            kept[name] = value
    return kept


def _is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_number(value: Any, low: float, high: float) -> bool:
    """Whether `value` is a number in the range; NaN is not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def whole_number(low: int, high: int, nullable: bool = False) -> Field:
    return Field(lambda value: _is_whole(value, low, high), f"a whole number from {low} to {high}", nullable)


def number(low: float, high: float, nullable: bool = False) -> Field:
    return Field(lambda value: _is_number(value, low, high), f"a number from {low:g} to {high:g}", nullable)


def one_of(*names: str, kept: bool = True) -> Field:
    return Field(lambda value: isinstance(value, str) and value in names, f"one of {', '.join(names)}", kept=kept)


def only(value: Any, expected: str, *, kept: bool = False, required: bool = False) -> Field:
    return Field(lambda actual: type(actual) is type(value) and actual == value, expected, kept=kept, required=required)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _are_labels(value: Any) -> bool:
    """Whether `value` is {"0": name, "1": name …}, in any order. Some published files use a number as a class name."""
    return (
        isinstance(value, dict)
        and len(value) <= MOST_CLASSES
        and set(value) == {str(number) for number in range(len(value))}
        and all(isinstance(name, str | int) for name in value.values())
    )


def _is_pruned(value: Any) -> bool:
    """Whether `value` is {"heads": [[0, 2], [], …], "neurons": [640, 0, …]}: for each layer, distinct ascending head numbers, and a
    count."""
    return (
        isinstance(value, dict)
        and value.keys() == {"heads", "neurons"}
        and all(isinstance(values, list) and values for values in value.values())
        and len(value["heads"]) == len(value["neurons"]) <= MOST_LAYERS
        and all(map(_are_rising, value["heads"]))
        and all(_is_whole(count, 0, MOST_WIDE) for count in value["neurons"])
    )


def _are_rising(value: Any) -> bool:
    heads = isinstance(value, list) and all(_is_whole(head, 0, MOST_HEADS - 1) for head in value)
    return heads and value == sorted(set(value))


def _are_layers(value: Any) -> bool:
    """Whether `value` is a number of last layers to average, or the weights of a mix."""
    if not isinstance(value, list):
        return _is_whole(value, 1, MOST_LAYERS)
    weights = all(_is_number(weight, 0, 1) for weight in value)
    return 2 <= len(value) <= MOST_LAYERS + 1 and weights and abs(sum(value) - 1) < _ROUNDING


FLAG = Field(lambda value: isinstance(value, bool), "true or false")
_TOKEN = whole_number(0, MOST_TOKENS - 1, nullable=True)
PROBABILITY = number(0, 1)
HEAD_DROPOUT = number(0, 1, nullable=True)
_DTYPE = one_of("float32", "float16", "bfloat16", "float64", kept=False)  # weights are always loaded as float32
_ENCODER = "false: decoders are not supported"

COMMON = {
    "architectures": Field(_are_names, "a list of names"),
    TOKENIZER_CLASS: Field(_is_name, "the name of a class"),
    "vocab_size": whole_number(1, MOST_TOKENS),
    "max_position_embeddings": whole_number(1, MOST_POSITIONS),
    "pad_token_id": _TOKEN,
    "bos_token_id": _TOKEN,
    "eos_token_id": _TOKEN,
    "initializer_range": number(0, 10),
    "tie_word_embeddings": FLAG,
    "id2label": Field(_are_labels, "names for the ids 0, 1, 2 …"),
    "num_labels": whole_number(1, MOST_CLASSES),
    "problem_type": one_of(*PROBLEMS),
    "sentence_pooling": one_of("mean", "cls"),  # this and the next are this package's own, of sentence encoders
    "sentence_layers": Field(_are_layers, f"a whole number from 1 to {MOST_LAYERS}, or a list of weights of sum 1"),
    THRESHOLD: number(-MOST_THRESHOLD, MOST_THRESHOLD),  # of question answering models
    "pruned": Field(  # this package's own: `models.pruned.shape`
        _is_pruned,
        "heads and neurons, each with an entry for every layer: ascending numbers of heads from 0, and a count",
    ),
    "dtype": _DTYPE,
    "torch_dtype": _DTYPE,
    "position_embedding_type": one_of("absolute", kept=False),
    "is_decoder": only(False, _ENCODER),
    "add_cross_attention": only(False, _ENCODER),
    "is_encoder_decoder": only(False, _ENCODER),
    "pruned_heads": only({}, "none: a checkpoint with all its heads"),
    "quantization_config": only(None, "none: weights in float32, float16 or bfloat16"),
}
