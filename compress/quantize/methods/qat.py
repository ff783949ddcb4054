"""Static quantization with the ranges that a `quantize_aware` stage trained."""

from __future__ import annotations

from typing import Any

from ...spec.quantization import Quantize
from ..quantizer import NOT_CALIBRATED, NOT_SEARCHED, Int8Job, Quantizer


def _quantize(job: Int8Job) -> dict[str, Any]:
    from ..int8_files import Quantization, write_int8
    from ..qat_params import trained_params

    return write_int8(
        job, lambda model, plan: Quantization(trained_params(plan, job.int8_format, job.trained, job.source), plan, {})
    )


def _problem(spec: Quantize) -> str | None:
    if spec.word_bits == 4:
        return "word_bits: the `quantize_aware` stage trains words of 8 bits; leave it out, or take another method"
    return None


QUANTIZER = Quantizer(
    name="qat",
    summary="static, with the ranges of the `quantize_aware` stage",
    quantize=_quantize,
    unused=NOT_SEARCHED | NOT_CALIBRATED,
    trains=True,
    problem=_problem,
)
