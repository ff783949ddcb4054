"""Records of how long models took."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from ..percentiles import has_interval
from .record import Count, Duration, Magnitude, Rate, Record

_PERCENTILES = {"p90": 0.9, "p99": 0.99}


class Latency(Record):
    """One shape. `batch` 0 with `length` 0: the task's own length distribution, one text at a time."""

    batch: Count
    length: Count
    p50: Rate
    p90: Rate | None = Field(default=None, description="none of fewer runs than its 95% interval needs: 36")
    p99: Rate | None = Field(default=None, description="none of fewer than 368 runs")
    examples_per_second: Rate
    speedup: Rate = Field(description="baseline p50 over this p50, same interleaved run")
    runs: Count
    cpu_p50: Duration | None = Field(
        default=None, description="p50 of the process's CPU time, all its threads together"
    )
    cpu_speedup: Rate | None = Field(default=None, description="baseline cpu_p50 over this one, same interleaved run")
    half_width: Magnitude | None = Field(
        default=None,
        description="half of the 95% interval of cpu_p50 on one thread, of p50 on several, in parts of it; none of few runs",
    )
    speedup_half_width: Magnitude | None = Field(default=None, description="the same, of cpu_speedup or speedup")
    p50_interval: tuple[Rate, Rate] | None = Field(default=None, description="95%, by the clock; none of few runs")
    p90_interval: tuple[Rate, Rate] | None = None
    p99_interval: tuple[Rate, Rate] | None = None
    starts: Count = Field(default=1, description="of the model's process; the runs are of all of them")

    @model_validator(mode="before")
    @classmethod
    def _without_unknown_percentiles(cls, fields: Any) -> Any:
        """Drop percentiles of too few runs, which older records have."""
        if not isinstance(fields, dict) or not isinstance(fields.get("runs"), int):
            return fields
        unknown = [name for name, share in _PERCENTILES.items() if not has_interval(fields["runs"], share)]
        return {**fields, **dict.fromkeys(unknown)}


class Runtime(Record):
    """One way of running one model."""

    latency: tuple[Latency, ...]
    peak_memory_bytes: Count
    load_ms: Duration
    threads: Count
    engine: str | None = Field(default=None, description="what ran it, e.g. `onnxruntime 1.31.1`")
