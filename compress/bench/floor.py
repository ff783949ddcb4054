"""Count an operator's multiply-accumulates from its shapes, and measure how many this machine does per second."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

Shape = Sequence[int]

# Rows, inner size and columns of the matmuls that rates are measured on: large enough for the call overhead to be
# negligible, with operands of at most 2 MB in total. Which size is faster depends on the CPU's caches.
SIZES = ((256, 512, 512), (512, 512, 512))
SECONDS = 0.5  # per size and precision


def matmul_macs(left: Shape, out: Shape) -> int:
    """Return the multiply-accumulates of a matmul of `left` [..., M, K], possibly transposed, into `out` [..., M, N]."""
    rows = prod(out[:-1])
    inner = prod(left) // max(1, rows)
    if len(left) != len(out) or inner not in left:  # the left operand is broadcast over the batch
        inner = left[-1]
    return prod(out) * inner


def attention_macs(query: Shape, key: Shape, out: Shape) -> int:
    """Return the multiply-accumulates of both matmuls of attention: queries by keys, probabilities by values.

    Shapes: [batch, length, hidden] or [batch, heads, length, size]; `out` has the shape of the query, with the value's size last.
    """
    return (prod(query) + prod(out)) * key[-2]


def fused_attention_macs(hidden: Shape, out: Shape) -> tuple[int, int]:
    """Return the multiply-accumulates of (projections, attention), for attention that projects `hidden` to queries, keys and values of the
    size of `out`."""
    return prod(hidden) * 3 * out[-1], attention_macs(out, out, out)


def measured_rates() -> dict[str, float]:
    """Return multiply-accumulates per second of CPU time on one thread, for `int8` (uint8 by int8) and `fp32`.

    The best of many runs of ONNX Runtime's own matmul on data that fit in the cache: the speed of its kernels on this machine, not
    the processor's peak.
    """
    with tempfile.TemporaryDirectory() as folder:
        return {kind: max(_rate(Path(folder), kind, size) for size in SIZES) for kind in ("int8", "fp32")}


def _rate(folder: Path, kind: str, size: tuple[int, int, int]) -> float:
    from ..sessions.opening import open_session

    session = open_session(_product(folder / "matmul.onnx", kind, size), threads=1)
    left = np.random.default_rng(0).integers(0, 255, size[:2]).astype(np.uint8 if kind == "int8" else np.float32)
    least, end = float("inf"), time.monotonic() + SECONDS
    while time.monotonic() < end or least == float("inf"):
        start = time.process_time()
        session.run(None, {"left": left})
        least = min(least, time.process_time() - start or float("inf"))
    return prod(size) / least


def _product(path: Path, kind: str, size: tuple[int, int, int]) -> Path:
    """Write a model of one matmul with a constant right operand, as in a linear layer."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rows, inner, columns = size
    right = np.random.default_rng(1).integers(-64, 64, (inner, columns))
    types = (TensorProto.UINT8, TensorProto.INT32) if kind == "int8" else (TensorProto.FLOAT, TensorProto.FLOAT)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger" if kind == "int8" else "MatMul", ["left", "right"], ["out"])],
        "matmul",
        [helper.make_tensor_value_info("left", types[0], [rows, inner])],
        [helper.make_tensor_value_info("out", types[1], [rows, columns])],
        [numpy_helper.from_array(right.astype(np.int8 if kind == "int8" else np.float32), "right")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def floor_ms(macs: Mapping[str, int], rates: Mapping[str, float]) -> float:
    """Return the milliseconds that `macs` (precision -> multiply-accumulates) take at `rates` (precision -> these per second)."""
    return sum(count / rates[precision] for precision, count in macs.items()) * 1000
