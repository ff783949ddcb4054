"""Made-up measurements in the form that `compress bench` passes to its pages: a model and its copy at several shapes and threads."""

from __future__ import annotations

from typing import Any

from compress.bench import AGAIN
from compress.bench.profile import Kind, Profile
from compress.provenance import Code
from compress.report.bench import Measurements
from compress.results import Latency, Machine, Runtime

Shape = tuple[int, int]
MACHINE = Machine(cpu="A CPU", isa=("avx2",), cores=2, memory_bytes=16_000_000_000, os="Linux 6.1")
MODELS = {"teacher": 1.0, "student": 0.5, "student-int8": 0.02}  # time relative to the teacher's


def row(shape: Shape, factor: float, threads: int, **changes: Any) -> Latency:
    """Return a row where a token takes a millisecond of wall-clock time on one thread, and a tenth less of CPU time."""
    batch, length = shape
    p50 = factor * max(1, batch) * (length or 20) / threads
    fields: dict[str, Any] = {
        "p50": p50,
        "examples_per_second": 1000 * max(1, batch) / p50,
        "speedup": 1 / factor,
        "runs": 36,
        "cpu_p50": 0.9 * p50 * threads,
        "cpu_speedup": 1 / factor,
        "half_width": 0.1,
        "p50_interval": (0.8 * p50, 1.25 * p50),
    }
    return Latency(batch=batch, length=length, **fields | changes)


def measurements(
    shapes: tuple[Shape, ...] = ((1, 16), (1, 64), (8, 16)),
    threads: tuple[int, ...] = (1, 2),
    *,
    models: dict[str, float] = MODELS,
    again: float = 1.0,
    rigor: str | None = None,
    **changes: Any,
) -> Measurements:
    """Return measurements. `again`: time of the repeated baseline relative to the baseline; `changes`: fields of every row."""
    runtimes = [
        {
            name: Runtime(
                latency=tuple(row(shape, factor, count, **changes) for shape in shapes),
                peak_memory_bytes=200_000_000,
                load_ms=12.5,
                threads=count,
                engine="onnxruntime 1.31.0",
            )
            for name, factor in {**models, AGAIN: again}.items()
        }
        for count in threads
    ]
    kinds = (Kind("MatMul", "fp32 matmuls", 4, 1.5, 0.75, 2_000_000), Kind("Add", "rest", 2, 0.5, 0.25, 0))
    groups, macs, rates = {"fp32 matmuls": 0.75, "rest": 0.25}, {"fp32": 2_000_000}, {"fp32": 6e10}
    profile = Profile(1, 16, 5, kinds, groups, 2.0, 1.5, 2.2, macs, rates, 0.03, 0.03, 1.1, 1.2)
    return Measurements(
        runtimes,
        {"teacher": (profile,)},
        command="compress bench mine --shape 1x16",
        task=None,
        data_dir=None,
        rigor=rigor,
        machine=MACHINE,
        versions={"onnxruntime": "1.31.0"},
        code=Code(version="1.0", source="0" * 64),
    )
