"""Quantize an fp32 ONNX file to int8 and check the result: matmuls that stay fp32 are named, or the file is refused.

onnx is imported only when a file is made, because plans and the command line need just the methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompressError
from ..spec.quantization import Quantize
from .methods import quantizer_of
from .quantizer import Int8Job

if TYPE_CHECKING:
    from .evaluator import Evaluator
    from .inc_tuning import Program
    from .qat_params import Trained
    from .sampling import Feed

__all__ = ["FILES", "quantize_onnx"]

# int8 format -> file name, one that other tools recognize.
FILES = {"dynamic": "model_quantized.onnx", "static": "model_quantized.onnx", "qdq": "model_qdq.onnx"}


def quantize_onnx(
    source: Path,
    out: Path,
    spec: Quantize,
    *,
    int8_format: str | None = None,
    feeds: Sequence[Feed] = (),
    evaluator: Evaluator | None = None,
    trained: Trained | None = None,
    read_program: Callable[[Sequence[str], int], Program] | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Write `out`/model_quantized.onnx and check it: ONNX checker, node counts, size, a run.

    `int8_format`: `dynamic` or `static` (default: the format of `spec.method`), or `qdq`, static in portable operators,
    written to `out`/model_qdq.onnx; `name` replaces these file names. If `source` has an unpadded form beside it, a
    `dynamic` or `static` file gets one too. `feeds`, `evaluator`, `trained`, `read_program`: what the method needs of them
    (`Int8Job`).

    Every matmul with a constant weight becomes int8, except those that `exclude` names or a search leaves in fp32, and the
    classifier: one row of a few columns, whose error would go straight into the logits and whose size is negligible. The
    pooler, and the keys and values that the fast graph absorbed, have int8 weights but are multiplied in fp32.
    CompressError: `source`, an `exclude` that matches nothing or everything, no feeds, a missing package, or a spec that the
    method refuses. CheckFailed: a matmul or table that should be int8 stayed fp32, or the file is not smaller; then no file
    is left.
    """
    quantizer, source = quantizer_of(spec), Path(source)
    quantizer.check_packages()
    wanted = int8_format or quantizer.int8_format
    if quantizer.calibrates(wanted) and not feeds:
        raise CompressError(
            f"{source}: the {wanted} format takes the ranges of activations from training texts, and the task has none"
        )
    # The method's own file has the same name in every format; a portable file beside it has another.
    default = FILES[wanted] if int8_format else FILES["static"]
    path = Path(out) / (name or default)
    return quantizer.quantize(Int8Job(quantizer, source, path, spec, wanted, feeds, evaluator, trained, read_program))
