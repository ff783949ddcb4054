"""Records of how long models took."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from ..stats.percentiles import has_interval
from .record import Count, Duration, Magnitude, Rate, Record

_PERCENTILES = {"p90": 0.9, "p99": 0.99}


class Latency(Record):
    """One shape. `batch` 0 with `length` 0: the task's own length distribution, one text at a time."""

    batch: Count
    length: Count
    p50: Rate
    p90: Rate | None = Field(default=None, description="null for fewer than 36 runs, too few for a 95% interval")
    p99: Rate | None = Field(default=None, description="null for fewer than 368 runs, too few for a 95% interval")
    examples_per_second: Rate
    speedup: Rate = Field(description="baseline p50 divided by this p50, from the same interleaved run")
    runs: Count
    cpu_p50: Duration | None = Field(default=None, description="p50 of the process's CPU time, summed over its threads")
    cpu_speedup: Rate | None = Field(
        default=None, description="baseline cpu_p50 divided by this one, from the same interleaved run"
    )
    half_width: Magnitude | None = Field(
        default=None,
        description="half the width of the 95% interval, as a fraction of the value: of cpu_p50 on one thread, of p50 on several; null for "
        "too few runs",
    )
    speedup_half_width: Magnitude | None = Field(default=None, description="the same for cpu_speedup or speedup")
    p50_interval: tuple[Rate, Rate] | None = Field(
        default=None, description="95% interval of wall-clock time; null for too few runs"
    )
    p90_interval: tuple[Rate, Rate] | None = None
    p99_interval: tuple[Rate, Rate] | None = None
    starts: Count = Field(
        default=1, description="times that the model's process was started; the runs of all starts are pooled"
    )

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
    engine: str | None = Field(default=None, description="runtime and version, e.g. `onnxruntime 1.31.1`")
