"""The speed-up of int8 over fp32 to expect on this CPU: from its features, with published measurements, or measured now."""

from __future__ import annotations

from collections.abc import Mapping

from ..machine import has_vnni, isa, saturates

# Whole models, ONNX Runtime, one thread, fp32 time over int8 time. AVX2: reports/graphs.md. VNNI: MiniLM-L6 and BERT base at 1 x 128 and
# 1 x 32, 32 x 128, with AMX and without: reports/int8-methods.md.
_AVX2, _VNNI = "1.6-2 times", "2.0-3.3 times"


def expected_speedup() -> str:
    """Return one line: the speed-up to expect, and why."""
    features = set(isa())
    if saturates() and features & {"avx2", "avx512f"}:
        return (
            f"about {_AVX2} as fast as fp32 (measured with AVX2 on MiniLM-L6 and BERT base): without VNNI a matmul "
            "takes three instructions, with sums of two in 16 bits, which saturate"
        )
    if saturates():
        return "hardly faster than fp32, if at all: no AVX2"
    if features & {"avx_vnni", "avx512_vnni"}:
        return (
            f"about {_VNNI} as fast as fp32 (measured with AVX-512 VNNI, with and without AMX, on MiniLM-L6 and BERT base): one "
            "exact instruction for four products"
        )
    if has_vnni():
        kind = "i8mm" if "i8mm" in features else "dotprod"
        return f"faster than fp32 by an amount that was not measured: Arm {kind}, exact sums of four products or more"
    return "maybe no faster than fp32: the CPU has no instruction for int8 matmuls that is known here"


def measured_speedup(rates: Mapping[str, float]) -> str:
    """Return a line on measured rates. `rates`: multiply-accumulates per second, `int8` and `fp32`. A whole model gains less: only matmuls
    become faster."""
    return (
        f"measured now: matmuls of {rates['int8'] / 1e9:.0f} billion multiply-accumulates a second in int8 and "
        f"{rates['fp32'] / 1e9:.0f} in fp32, {rates['int8'] / rates['fp32']:.1f} times as fast; a whole model gains less"
    )
