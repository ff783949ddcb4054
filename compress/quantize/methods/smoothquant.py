"""Static quantization after moving the peaks of activations into the weights (Xiao et al. 2023, arXiv:2211.10438)."""

from __future__ import annotations

from typing import Any

from ..quantizer import NOT_SEARCHED, Int8Job, Quantizer


def _quantize(job: Int8Job) -> dict[str, Any]:
    from ..int8_files import write_calibrated

    return write_calibrated(job, smooth=True)


QUANTIZER = Quantizer(
    name="smoothquant",
    summary="static, after activation peaks are moved into the weights",
    quantize=_quantize,
    unused=NOT_SEARCHED,
    smooths=True,
    evaluates=True,
)
