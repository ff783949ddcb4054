"""SmoothQuant, with fp32 for the matmuls whose int8 form changes too many answers for the time that it saves."""

from __future__ import annotations

from typing import Any

from ..quantizer import Int8Job, Quantizer


def _quantize(job: Int8Job) -> dict[str, Any]:
    from ..int8_files import write_int8
    from ..mixed_precision import search

    return write_int8(
        job, lambda model, plan: search(model, job.source, plan, job.spec, job.feeds, job.required_evaluator())
    )


QUANTIZER = Quantizer(
    name="auto",
    summary="smoothquant, with fp32 fallbacks until the goal of `max_drop` and `max_flips` is met",
    quantize=_quantize,
    other_files={"qdq": "smoothquant", "avx2": "smoothquant"},
    smooths=True,
    evaluates=True,
    counts_flips=True,
    depends_on=frozenset({"isa", "cpu"}),  # the search measures this CPU's answers and speed
    needs_matmuls=True,
)
