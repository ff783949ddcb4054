"""The quantization methods, one file each. To add one, write its file and add it to `QUANTIZERS`."""

from __future__ import annotations

from ...errors import CompressError, did_you_mean
from ...spec.quantization import Quantize
from ..quantizer import Quantizer
from . import auto, dynamic, inc_static, qat, smoothquant, static

__all__ = ["QUANTIZERS", "int8_format", "quantizer_of", "spec_of_file"]

QUANTIZERS: dict[str, Quantizer] = {
    "dynamic": dynamic.QUANTIZER,
    "static": static.QUANTIZER,
    "smoothquant": smoothquant.QUANTIZER,
    "auto": auto.QUANTIZER,
    "qat": qat.QUANTIZER,
    "inc-static": inc_static.QUANTIZER,
}


def quantizer_of(spec: Quantize) -> Quantizer:
    """Return the method of `spec`. CompressError: there is no such method, or it refuses `spec`."""
    if spec.method not in QUANTIZERS:
        raise CompressError(
            f"quantize.method: there is no {spec.method!r}{did_you_mean(spec.method, list(QUANTIZERS))}"
        )
    quantizer = QUANTIZERS[spec.method]
    if problem := quantizer.problem(spec):
        raise CompressError(f"quantize.{problem}")
    return quantizer


def int8_format(spec: Quantize, precision: str) -> str:
    """Return the int8 format of the file of a precision: `int8`, `avx2` or `qdq`."""
    return "qdq" if precision == "qdq" else quantizer_of(spec_of_file(spec, precision)).int8_format


def spec_of_file(spec: Quantize, precision: str) -> Quantize:
    """Return the settings of the file of a precision.

    `avx2` has 7-bit rather than unsigned weights. Both are free of saturation (2 × 255 × 63 fits into 16 bits; ONNX Runtime
    multiplies U8 by U8 in 16-bit halves, exactly), but 7-bit ones are S8 like those of the `int8` file, while a matmul of U8
    by U8 is no faster than fp32 on a CPU with VNNI (docs/bundle.md has the figures).
    """
    method = quantizer_of(spec).other_files.get(precision, spec.method)
    bits = {"reduce_range": True} if precision == "avx2" else {}
    return spec.model_copy(update={"method": method, **bits})
