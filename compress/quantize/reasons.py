"""Why a part of a quantized model is still computed in fp32."""

from __future__ import annotations

import re
from collections.abc import Iterator

from onnx import ModelProto

from ..graphs import matmuls, output_matmuls
from .node_selection import QuantizationPlan, look_ups, worth_int8

CLASSIFIER = "the classifier: its error would go straight into the logits, and its size is nothing"
HEAD = "next to the logits, one row a text: int8 weights, multiplied in fp32"
STACKED = "absorbed keys or values, a matrix for each head: int8 weights, multiplied in fp32"
FEW = "a table of a few rows: int8 would save kilobytes at most, and take time"
TABLE = "the recipe says `embeddings: false`"
FALLBACK = "fp32 fallback of the search: int8 costs too much of the answers here for the time that it saves"


def why_fp32(model: ModelProto, plan: QuantizationPlan, exclude: tuple[str, ...]) -> dict[str, str]:
    """Node -> reason, of the matmuls by a stored weight that are multiplied in fp32, and of the tables that stay fp32.

    `model`: the fp32 one that `plan` was made for.
    """
    return dict(_reasons(model, plan, exclude))


def _reasons(model: ModelProto, plan: QuantizationPlan, exclude: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    classifier, stacked = set(output_matmuls(model.graph)), set(matmuls(model.graph).stacked)
    for name in plan.kept:
        yield name, CLASSIFIER if name in classifier else _excluded(name, exclude, FALLBACK)
    for name in plan.weight_only:
        yield name, STACKED if name in stacked else HEAD
    large = worth_int8(model)
    for name in look_ups(model):
        if name not in plan.tables:
            yield name, _excluded(name, exclude, TABLE if name in large else FEW)


def _excluded(name: str, exclude: tuple[str, ...], otherwise: str) -> str:
    pattern = next((pattern for pattern in exclude if re.search(pattern, name)), None)
    return otherwise if pattern is None else f"named by the recipe's `exclude`: {pattern}"
