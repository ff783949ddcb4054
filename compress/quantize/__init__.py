"""fp32 ONNX -> int8 ONNX, and proof that it happened: what stayed fp32 is named, or the outcome is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from ..errors import CheckFailed, CompressError
from ..graphs import (
    Products,
    check_model,
    fold_transposes,
    get_metadata,
    merge_duplicates,
    output_products,
    products,
    set_metadata,
    strip_identities,
    write_model,
)
from ..sessions import check_graph_file, open_session
from ..spec.stages import Quantize
from .dynamic import quantize_dynamic

__all__ = ["QUANTIZERS", "quantize_onnx"]

# method -> function from (fp32 model, spec, names of the nodes that stay fp32) to the int8 model.
QUANTIZERS: dict[str, Callable[[ModelProto, Quantize, tuple[str, ...]], ModelProto]] = {"dynamic": quantize_dynamic}


def quantize_onnx(source: Path, out: Path, spec: Quantize) -> dict[str, Any]:
    """Write `out`/model_quantized.onnx and check it: ONNX checker, counts of nodes, size, a run.

    Every product with a constant weight becomes int8, except those that `exclude` names and the
    classifier: one row of a few columns, whose error would go straight into the logits and whose
    size is nothing. CompressError: `source`, or an `exclude` that matches nothing. CheckFailed: a
    product or table that should be int8 stayed fp32, or the file is not smaller; then no file is left.
    """
    model = _read(Path(source))
    strip_identities(model.graph)
    fold_transposes(model.graph)
    merge_duplicates(model.graph)
    before = products(model.graph)
    classifier = tuple(name for name in output_products(model.graph) if name in before.fp32)
    excluded = _excluded(model, spec.exclude, Path(source))
    kept = tuple(dict.fromkeys((*excluded, *classifier)))
    quantized = QUANTIZERS[spec.method](model, spec, kept)
    metadata = {**get_metadata(model), "quantization": json.dumps(spec.model_dump(mode="json"), sort_keys=True)}
    set_metadata(quantized, metadata)
    info = _counts(quantized, before, kept, spec)
    path = Path(out) / "model_quantized.onnx"
    write_model(quantized, path)
    try:
        return {**info, **_check_file(path, Path(source))}
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _read(source: Path) -> ModelProto:
    check_graph_file(source)
    model = onnx.load(source)
    found = products(model.graph)
    if found.int8 or not found.fp32:
        raise CompressError(
            f"{source}: expected an fp32 model, found {len(found.int8)} int8 and {len(found.fp32)} fp32 weight "
            "products; quantize the file that `export` wrote"
        )
    return model


def _excluded(model: ModelProto, patterns: tuple[str, ...], source: Path) -> tuple[str, ...]:
    """Nodes whose name a pattern matches anywhere (re.search), among those that could become int8."""
    candidates = [*products(model.graph).fp32, *_tables(model)]
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            matches = [name for name in candidates if re.search(pattern, name)]
        except re.error as error:
            raise CompressError(f"quantize.exclude: {pattern!r} is not a regular expression: {error}") from None
        if not matches:
            raise CompressError(
                f"quantize.exclude: {pattern!r} matches no weight product or embedding of {source}; "
                f"they are named like {candidates[-1]!r} and {candidates[0]!r}"
            )
        found.update(dict.fromkeys(matches))
    return tuple(found)


_FP32 = (onnx.TensorProto.FLOAT,)
_INT8 = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)


def _tables(model: ModelProto, kinds: tuple[int, ...] = _FP32) -> list[str]:
    """Gather nodes that look up rows of a constant table of such a type: the embeddings."""
    tables = {tensor.name for tensor in model.graph.initializer if tensor.data_type in kinds and len(tensor.dims) == 2}
    return [node.name for node in model.graph.node if node.op_type == "Gather" and node.input[0] in tables]


def _counts(model: ModelProto, before: Products, kept: tuple[str, ...], spec: Quantize) -> dict[str, Any]:
    after, tables = products(model.graph), _tables(model)
    expected = [name for name in before.fp32 if name in kept]
    # ONNX Runtime's quantizer splits a Gemm into `<name>_MatMul` and an Add.
    stayed = [name.removesuffix("_MatMul") if name not in before.fp32 else name for name in after.fp32]
    wrong = [name for name in stayed if name not in kept]
    wrong += [name for name in tables if spec.embeddings and name not in kept]
    lost = len(before.fp32) - len(after.int8) - len(after.fp32)
    if wrong or lost or not after.int8:
        listed = ", ".join(wrong[:5]) + (", …" if len(wrong) > 5 else "")
        raise CheckFailed(
            f"quantize: expected {len(before.fp32) - len(expected)} int8 weight products, found {len(after.int8)}; "
            + (f"stayed fp32: {listed}; " if wrong else "")
            + "export the model again, or name the nodes in `exclude`"
        )
    return {
        "method": spec.method,
        "int8_matmuls": len(after.int8),
        "fp32_matmuls": len(after.fp32),
        "expected_fp32": expected,
        "activation_matmuls": len(after.activation),
        "int8_gathers": len(_tables(model, _INT8)),
        "fp32_gathers": len(tables),
    }


def _check_file(path: Path, source: Path) -> dict[str, Any]:
    check_model(path)
    size, full = (_weight_bytes(onnx.load(file)) for file in (path, source))
    if size >= full:
        raise CheckFailed(
            f"{path}: expected less than {full:,} bytes of weights (fp32), found {size:,}: nothing is gained"
        )
    session = open_session(path)
    shape = (2, 3)
    feed = {value.name: np.ones(shape, np.int64) for value in session.get_inputs()}
    logits = np.asarray(session.run(["logits"], feed)[0])
    if not np.isfinite(logits).all():
        raise CheckFailed(f"{path}: the int8 model gives logits that are not finite")
    stored = path.stat().st_size
    return {"bytes": stored, "ratio_to_fp32": round(stored / source.stat().st_size, 4)}


def _weight_bytes(model: ModelProto) -> int:
    """Of the tensors alone: in a toy model the extra nodes outweigh what the weights save."""
    return sum(onnx.numpy_helper.to_array(tensor).nbytes for tensor in model.graph.initializer)
