"""Why a part of a quantized model is still computed in fp32."""

from __future__ import annotations

import re
from collections.abc import Iterator

from onnx import ModelProto

from ..graphs import output_products, products
from .choosing import Choice, look_ups, worth_int8

CLASSIFIER = "the classifier: its error would go straight into the logits, and its size is nothing"
HEAD = "next to the logits, one row a text: int8 weights, multiplied in fp32"
STACKED = "absorbed keys or values, a matrix for each head: int8 weights, multiplied in fp32"
FEW = "a table of a few rows: int8 would save kilobytes at most, and take time"
TABLE = "the recipe says `embeddings: false`"
GIVEN_BACK = "given back to fp32 by the search: int8 costs too much of the answers here for the time that it saves"


def why_fp32(model: ModelProto, choice: Choice, exclude: tuple[str, ...]) -> dict[str, str]:
    """Node -> reason, of the products by a stored weight that are multiplied in fp32, and of the tables that stay fp32.

    `model`: the fp32 one that `choice` was made for.
    """
    return dict(_reasons(model, choice, exclude))


def _reasons(model: ModelProto, choice: Choice, exclude: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    classifier, stacked = set(output_products(model.graph)), set(products(model.graph).stacked)
    for name in choice.kept:
        yield name, CLASSIFIER if name in classifier else _excluded(name, exclude, GIVEN_BACK)
    for name in choice.weight_only:
        yield name, STACKED if name in stacked else HEAD
    large = worth_int8(model)
    for name in look_ups(model):
        if name not in choice.tables:
            yield name, _excluded(name, exclude, TABLE if name in large else FEW)


def _excluded(name: str, exclude: tuple[str, ...], otherwise: str) -> str:
    pattern = next((pattern for pattern in exclude if re.search(pattern, name)), None)
    return otherwise if pattern is None else f"named by the recipe's `exclude`: {pattern}"
