"""Checks of an int8 graph, its metadata, and the reasons why parts of it are computed in fp32."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from ..errors import CheckFailed
from ..graphs.matmuls import matmuls, output_matmuls
from ..graphs.model_files import check_model, set_metadata
from ..sessions.checks import WEIGHTS
from ..sessions.opening import open_session
from ..sessions.outputs import run_logits
from .node_selection import INT8, QuantizationPlan, look_ups, packed_look_ups, worth_int8


def describe(model: ModelProto, metadata: Mapping[str, str], described: Mapping[str, Any]) -> None:
    """Set the metadata of `model` to the fp32 graph's `metadata` and `described`, how it was quantized. In place."""
    kept = {name: value for name, value in metadata.items() if name != WEIGHTS}
    set_metadata(model, {**kept, "quantization": json.dumps(described, sort_keys=True)})


def counts(model: ModelProto, plan: QuantizationPlan) -> dict[str, Any]:
    after, tables = matmuls(model.graph), look_ups(model)
    allowed = {*plan.kept, *plan.weight_only}
    wrong = [name for name in after.fp32 + after.stacked if name not in allowed]
    wrong += [name for name in tables if name in plan.tables]
    if wrong or not (plan.int8 or plan.tables) or len(after.int8) != len(plan.int8):
        listed = ", ".join(wrong[:5]) + (", …" if len(wrong) > 5 else "")
        raise CheckFailed(
            f"quantize: expected {len(plan.int8)} int8 weight matmuls, found {len(after.int8)}; "
            + (f"stayed fp32: {listed}; " if wrong else "")
            + "export the model again, or name the nodes in `exclude`"
        )
    return {
        "int8_matmuls": len(after.int8),
        "fp32_matmuls": len(plan.kept),
        "weight_only_matmuls": len(plan.weight_only),
        "expected_fp32": list(plan.kept),
        "activation_matmuls": len(after.activation),
        "int8_gathers": len(look_ups(model, INT8)),
        "int4_gathers": len(packed_look_ups(model)),
        "fp32_gathers": len(tables),
    }


def check_file(path: Path, source: Path) -> dict[str, Any]:
    check_model(path)
    size, full = (_weight_bytes(onnx.load(file)) for file in (path, source))
    if size >= full:
        raise CheckFailed(
            f"{path}: expected less than {full:,} bytes of weights (fp32), found {size:,}: nothing is gained"
        )
    session = open_session(path)
    shape = (2, 3)
    feed = {value.name: np.ones(shape, np.int64) for value in session.get_inputs()}
    if not np.isfinite(run_logits(session, feed)).all():
        raise CheckFailed(f"{path}: the int8 model gives logits that are not finite")
    stored = path.stat().st_size
    return {"bytes": stored, "ratio_to_fp32": round(stored / source.stat().st_size, 4)}


def _weight_bytes(model: ModelProto) -> int:
    """Return the bytes of the tensors alone: in a toy model the extra nodes outweigh what the weights save."""
    return sum(onnx.numpy_helper.to_array(tensor).nbytes for tensor in model.graph.initializer)


CLASSIFIER = "the classifier: its error would go straight into the logits, and its size is nothing"
HEAD = "next to the logits, one row a text: int8 weights, multiplied in fp32"
STACKED = "absorbed keys or values, or those of positions, a matrix for each head: int8 weights, multiplied in fp32"
FEW = "a table of a few rows: int8 would save kilobytes at most, and take time"
TABLE = "the recipe says `embeddings: false`"
FALLBACK = "fp32 fallback of the search: int8 costs too much of the answers here for the time that it saves"


def why_fp32(model: ModelProto, plan: QuantizationPlan, exclude: tuple[str, ...]) -> dict[str, str]:
    """Map each fp32 node to a reason: matmuls by a stored weight that are multiplied in fp32, and tables that stay fp32.

    `model`: the fp32 graph that `plan` was made for.
    """
    return dict(_reasons(model, plan, exclude))


def _reasons(model: ModelProto, plan: QuantizationPlan, exclude: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    classifier, stacked = set(output_matmuls(model.graph)), set(matmuls(model.graph).stacked)
    for name in plan.kept:
        yield name, CLASSIFIER if name in classifier else _exclusion_reason(name, exclude, FALLBACK)
    for name in plan.weight_only:
        yield name, STACKED if name in stacked else HEAD
    large = worth_int8(model)
    for name in look_ups(model):
        if name not in plan.tables:
            yield name, _exclusion_reason(name, exclude, TABLE if name in large else FEW)


def _exclusion_reason(name: str, exclude: tuple[str, ...], otherwise: str) -> str:
    pattern = next((pattern for pattern in exclude if re.search(pattern, name)), None)
    return otherwise if pattern is None else f"named by the recipe's `exclude`: {pattern}"
