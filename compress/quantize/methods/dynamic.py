"""Dynamic quantization: activation ranges are computed in each run, without calibration texts."""

from __future__ import annotations

from typing import Any

from ..quantizer import NOT_CALIBRATED, NOT_SEARCHED, Int8Job, Quantizer


def _quantize(job: Int8Job) -> dict[str, Any]:
    from ..int8_files import write_calibrated

    return write_calibrated(job, smooth=False)


QUANTIZER = Quantizer(
    name="dynamic",
    summary="activation ranges computed in each run",
    quantize=_quantize,
    int8_format="dynamic",
    unused=NOT_SEARCHED | NOT_CALIBRATED | {"method"},  # implied by the format
    other_files={"qdq": "static"},
)
