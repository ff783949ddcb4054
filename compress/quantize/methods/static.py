"""Static quantization with activation ranges calibrated on training texts."""

from __future__ import annotations

from typing import Any

from ..quantizer import NOT_SEARCHED, Int8Job, Quantizer


def _quantize(job: Int8Job) -> dict[str, Any]:
    from ..int8_files import write_calibrated

    return write_calibrated(job, smooth=False)


QUANTIZER = Quantizer(
    name="static",
    summary="activation ranges calibrated on training texts",
    quantize=_quantize,
    unused=NOT_SEARCHED | {"method", "alpha", "outlier_splitting"},  # the format implies the method
)
