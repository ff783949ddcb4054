"""The result of a run: one JSON file with all that a reader needs to trust it.

Scores are in points (0-100; correlations and Matthews × 100). Times are milliseconds, sizes bytes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from .errors import CompressError
from .spec.base import Spec

SCHEMA = 1
# Beside the result, paths in the store: of the graphs and checkpoints of its models, and of every stage's checkpoint.
MODELS, CHECKPOINTS = "models.json", "checkpoints.json"
PREDICTIONS = "predictions.npz"  # logits and gold of the reported splits
RESULT, SEVERAL = "result.json", "results.json"
REPORT = ("report.md", "report.html", "plot.svg", "sensitivity.svg")
REPORT_MARK = "<!-- compress report"  # the last line of a report.md


class _Record(Spec):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Machine(_Record):
    cpu: str
    isa: tuple[str, ...] = Field(description="the vector extensions that matter, e.g. avx2, avx512_vnni")
    cores: int = Field(description="physical cores the process may use")
    memory_bytes: int
    os: str
    gpu: str | None = None


class Data(_Record):
    """What was read: rows per split, and what is known about completeness."""

    source: str = Field(description="`files`, `hub`, `saved` or `synthetic`")
    rows: dict[str, int] = Field(description="split -> examples; train excludes the tuning split")
    notes: tuple[str, ...] = Field((), description="e.g. 'train has 46,165 of 392,702 rows: a subset'")
    fingerprint: str


class TaskInfo(_Record):
    name: str
    title: str
    kind: Literal["classification", "regression"]
    labels: tuple[str, ...]
    metrics: tuple[str, ...] = Field(description="the headline score is their mean")
    splits: tuple[str, ...] = Field(description="reported splits; the headline is on the first")
    data: Data


class StageRecord(_Record):
    kind: str
    key: str
    cached: bool
    seconds: float = Field(description="when it was built, whether or not it came from the cache now")
    info: dict[str, Any] = Field(
        default_factory=dict, description="what the stage says of itself: steps, losses, counts"
    )


class Delta(_Record):
    """Headline score against another model's on the same examples: the baseline's (the fp32 teacher), or that of the fp32
    model which a quantized one was made from. Positive: better than that one."""

    points: float
    low: float = Field(description="95% paired bootstrap interval")
    high: float
    mcnemar_p: float | None = Field(None, description="exact McNemar test, accuracy tasks only")

    @property
    def distinguishable(self) -> bool:
        return not self.low <= 0 <= self.high


class Flip(_Record):
    """An example that a quantized model decides otherwise than the fp32 model it was made from."""

    row: int = Field(description="of the split's examples in file order: 1 is the first, a header does not count")
    fp32: str = Field(description="label name")
    int8: str = Field(description="label name")
    confidence: float = Field(description="the fp32 model's probability of its decision, 0 to 1")
    gold: Literal["fp32", "int8", "neither"] = Field(description="which of the two the gold label agrees with")


class Fidelity(_Record):
    """A quantized model beside the fp32 model it was made from, on the first reported split."""

    reference: str = Field(description="that fp32 model's array name in predictions.npz")
    split: str
    examples: int
    delta: Delta = Field(description="against the reference")
    flips: int | None = Field(None, description="examples that are decided otherwise; regression: none")
    flip_rate: float | None = Field(None, description="share of the examples, 0 to 1")
    flipped: tuple[Flip, ...] = Field((), description="all of them, those of which fp32 is most sure first")
    mean_logit_difference: float = Field(description="mean |fp32 − int8| over examples and classes")
    worst_logit_difference: float
    fp32_calibration_error: float | None = Field(
        None, description="expected calibration error, points, 15 bins of equal width; regression: none"
    )
    int8_calibration_error: float | None = None


class Latency(_Record):
    """One shape. `batch` 0 with `length` 0: the task's own length distribution, one text at a time."""

    batch: int
    length: int
    p50: float
    p90: float
    p99: float
    examples_per_second: float
    speedup: float = Field(description="baseline p50 over this p50, same interleaved run")
    runs: int
    cpu_p50: float | None = Field(default=None, description="p50 of the process's CPU time, all its threads together")
    cpu_speedup: float | None = Field(default=None, description="baseline cpu_p50 over this one, same interleaved run")


class Runtime(_Record):
    """One way of running one model."""

    latency: tuple[Latency, ...]
    peak_memory_bytes: int
    load_ms: float
    threads: int
    engine: str | None = Field(default=None, description="what ran it, e.g. `onnxruntime 1.31.1`")


class ModelResult(_Record):
    name: str = Field(description="e.g. `teacher`, `student`")
    precision: Literal["fp32", "int8", "avx2", "qdq"] = Field(
        description="`avx2`: int8 with 7-bit weights; `qdq`: int8 in portable operators"
    )
    architecture: str = Field(description="e.g. `6 x 384, 12 heads, FFN 1536`")
    parameters: int
    embedding_parameters: int
    flops_per_token: int = Field(
        description="multiply-adds × 2 per token at length 128, attention included, embeddings are look-ups"
    )
    flops_per_example: int = Field(description="the same at the task's mean length")
    file_bytes: int
    scores: dict[str, dict[str, float]] = Field(
        description="reported split -> metric -> points, through ONNX Runtime on the whole split"
    )
    headline: float
    delta: Delta | None = Field(None, description="none for the baseline itself")
    predictions: str = Field(
        description="array name in predictions.npz: float32 logits [example, class], in file order"
    )
    onnx: Runtime | None = None
    torch_eager: Runtime | None = None
    fidelity: Fidelity | None = Field(default=None, description="of a quantized model; results of before have none")
    info: dict[str, Any] = Field(
        default_factory=dict,
        description="parity, int8 and fp32 matrix products, what stayed fp32 and why, fidelity and signal-to-noise per part "
        "on the tuning split",
    )


class Result(_Record):
    schema_version: Literal[1] = SCHEMA
    run: str = Field(description="name of the run directory")
    created: str = Field(description="ISO 8601, UTC")
    command: str = Field(description="the command line that reproduces it")
    recipe: dict[str, Any] = Field(description="resolved")
    teacher: str
    student: str | None
    seed: int
    task: TaskInfo
    machine: Machine
    versions: dict[str, str]
    stages: tuple[StageRecord, ...]
    models: tuple[ModelResult, ...] = Field(description="the first is the baseline: the fp32 teacher on ONNX Runtime")
    noise: tuple[Latency, ...] = Field((), description="A/A: the baseline measured against itself")
    settings: dict[str, Any] = Field(default_factory=dict, description="threads, precision, benchmark settings")

    @property
    def final(self) -> ModelResult:
        """The model that ships: the last one made."""
        return self.models[-1]


def write_result(result: Result, folder: Path) -> Path:
    """`folder/result.json`, whole or not at all."""
    path = folder / RESULT
    temporary = path.with_suffix(".tmp")
    temporary.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def read_result(path: Path) -> Result:
    """A `result.json`, or the folder that holds one.

    Raises `CompressError` naming the file when it is missing, not JSON, or of another schema.
    """
    file = path / RESULT if path.is_dir() else path
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return Result.model_validate(document)
    except FileNotFoundError:
        raise CompressError(f"{file}: no such file; expected a run directory or its result.json") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CompressError(f"{file}: not a result of schema {SCHEMA}: {where}: {first['msg']}") from None
    except (OSError, ValueError, RecursionError) as error:  # no text, no JSON, numbers too long, too deep
        raise CompressError(f"{file}: cannot be read as a result: {error}") from None


def is_report(folder: Path) -> bool:
    """Whether `report.md` in `folder` is one that this tool wrote."""
    page = folder / REPORT[0]
    return page.is_file() and REPORT_MARK.encode() in page.read_bytes()[-200:]
