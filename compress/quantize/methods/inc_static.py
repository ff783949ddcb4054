"""neural-compressor's static quantization of the checkpoint, and its search for matmuls to keep in fp32."""

from __future__ import annotations

from typing import Any

from ...spec.quantization import Quantize
from ..quantizer import NOT_CALIBRATED, Int8Job, Quantizer


def _quantize(job: Int8Job) -> dict[str, Any]:
    from ..inc import write_inc

    return write_inc(job)


def _problem(spec: Quantize) -> str | None:
    if spec.reduce_range:
        return "reduce_range: neural-compressor's weights have 8 bits; leave it out, or take another method"
    return None


QUANTIZER = Quantizer(
    name="inc-static",
    summary="neural-compressor's static quantization and its search for fp32 matmuls",
    quantize=_quantize,
    int8_format="qdq",
    unused=(NOT_CALIBRATED - {"calibration_examples"}) | {"max_flips", "reduce_range"},
    other_files={"qdq": "static", "avx2": "static"},
    evaluates=True,
    depends_on=frozenset({"isa"}),  # its search depends on this CPU's answers
    packages=("torch", "neural-compressor", "torchao"),
    requirement="neural-compressor[pt]",
    problem=_problem,
    needs_matmuls=True,
)
