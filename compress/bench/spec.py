"""What to measure, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Shape = tuple[int, int]  # batch, length in tokens
Progress = Callable[[str, int, int], None]  # what is measured, done, total


@dataclass(frozen=True)
class Candidate:
    """`path` is an ONNX file, or a checkpoint folder run in eager fp32 (`torch`).

    `lengths`: tokens per text by its own tokenizer, for the same texts as `BenchSpec.lengths`; default: those lengths.
    """

    name: str
    path: Path
    runtime: Literal["onnx", "openvino-f32", "openvino-bf16", "torch"]
    lengths: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rigor:
    """Minimum per model and shape: texts, seconds of its own runs, and starts of its process.

    Texts and seconds are totals over all starts. As in MLPerf's load generator, a measurement ends as soon as both are reached
    (inference rules, https://github.com/mlcommons/inference_policies).
    """

    queries: int
    seconds: float
    starts: int


RIGOR = {"quick": Rigor(1024, 10.0, 3), "full": Rigor(24_576, 600.0, 5)}


@dataclass(frozen=True)
class BenchSpec:
    """`shapes`: (batch, length in tokens); `lengths`: a sample of the task's own text lengths, run one text at a time.

    `runs`: per model and shape. `narrow`: stop earlier once the half-width of the 95% interval of every p50 and of every ratio to the
    baseline is at most this fraction of it. `rigor` takes precedence over both.
    """

    shapes: tuple[Shape, ...] = ((1, 32), (1, 128), (32, 128))
    lengths: tuple[int, ...] = ()
    runs: int = 36  # the fewest that give an interval of the p90
    warmup: int = 5
    threads: int = 1
    narrow: float | None = None
    rigor: Rigor | None = None
