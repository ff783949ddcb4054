"""The result of a run: one JSON file with all that a reader needs to trust it.

Scores are in points (0-100; correlations and Matthews × 100). Times are milliseconds, sizes bytes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from .. import machine
from ..errors import CompressError
from ..files.atomic import write_text
from ..provenance import Code, Corpus, TeacherOrigin
from ..spec.kinds import KindName, MetricName
from ..spec.stage import problem
from ..spec.task import MEAN
from .fidelity import MOST_DISAGREEMENTS, Delta, Disagreement, EntityScore, Fidelity, ReliabilityBin
from .latency import Latency, Runtime
from .pruning import PruningRecord
from .record import (
    Count,
    Duration,
    FileName,
    ModelInfo,
    Points,
    RecipeRecord,
    Record,
    Seed,
    Settings,
    Size,
    StageInfo,
    contradictions,
    read_record,
)
from .similarity import LayerSimilarity
from .teachers import EnsembleScore
from .vocabulary import VocabularyRecord

SCHEMA = 1
# Files beside the result with paths in the store: graphs and checkpoints of its models, and every stage's checkpoint.
MODELS, CHECKPOINTS = "models.json", "checkpoints.json"
LOG = "log.jsonl"  # of a run: a line for each optimizer step of its trainings
PREDICTIONS = "predictions.npz"  # logits and gold of the reported splits
TOKENS = "tokens"  # array in these, for classes: how many of the teacher's tokens each example has
PER_EXAMPLE = "per_example.npz"  # of a report's runs: class ids or scores, and gold
RESULT, SEVERAL, ABLATION = "result.json", "results.json", "ablation.json"
REPORT = (
    "report.md", "report.html", "plot.svg", "sizes.svg", "sensitivity.svg", "pruned.svg", "reliability.svg", "similarity.svg",
)  # fmt: skip
REPORT_MARK = "<!-- compress report"  # the last line of a report.md


class Machine(Record):
    cpu: str
    isa: tuple[str, ...] = Field(description="vector extensions that matter here, e.g. avx2, avx512_vnni")
    cores: Count = Field(description="physical cores the process may use")
    memory_bytes: Count
    os: str
    gpu: str | None = None

    @property
    def kind(self) -> str:
        """What identifies a kind of machine: its CPU and the vector extensions."""
        return f"{self.cpu}|{','.join(self.isa)}"

    @classmethod
    def here(cls) -> Machine:
        """Return the machine of this process, without importing torch."""
        return cls(
            cpu=machine.cpu_name(),
            isa=machine.isa(),
            cores=machine.usable_cores(),
            memory_bytes=machine.memory_bytes(),
            os=machine.operating_system(),
            gpu=machine.gpu_name(),
        )


# Phrases in the notes of `Data`: for what splits have in common, for fewer rows than the official data have, and for a split by which
# models cannot be ranked.
ALSO_IN, NEAR_TO, SUBSET = "also stand in", "near to", "a subset"
ONE_TUNING_LABEL = "the tuning split has one label alone"


class Data(Record):
    """What was read: rows per split, and what is known about completeness."""

    source: str = Field(description="`files`, `hub`, `saved` or `synthetic`")
    rows: dict[str, Count] = Field(description="split -> examples; train excludes the tuning split")
    notes: tuple[str, ...] = Field((), description="e.g. 'train has 46,165 of 392,702 rows: a subset'")
    fingerprint: str
    tuning: str | None = Field(default=None, description="SHA-256 of the tuning split's texts and labels")

    def shares_in_train(self) -> dict[str, float]:
        """Return reported split -> the share of its texts, 0 to 1, that also stand in train, for splits with a note on that."""
        pattern = re.compile(rf"(\d[\d,]*) of (\d[\d,]*) (.+) texts {ALSO_IN} train")
        shares = {}
        for match in filter(None, map(pattern.fullmatch, self.notes)):
            shared, total = (int(count.replace(",", "")) for count in match.groups()[:2])
            shares[match[3]] = shared / max(total, 1)
        shares.pop("tuning", None)
        return shares


class TaskInfo(Record):
    name: str
    title: str
    kind: KindName
    labels: tuple[str, ...]
    metrics: Annotated[tuple[MetricName, ...], Field(min_length=1)] = Field(
        description="the headline score is their mean"
    )
    splits: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="reported splits; the headline score is on the first, which may be `mean`, all others together"
    )
    headline: Literal["first", "mean"] = Field(
        default="first", description="mean: each score on the first of `splits` is the mean of those on the others"
    )
    unanswerable: bool = Field(default=False, description="whether some training questions have no answer")
    positive: str | None = Field(
        default=None, description="classification: the label that F1 counts; earlier versions did not record it"
    )
    data: Data

    @model_validator(mode="after")
    def _means_something(self) -> TaskInfo:
        if self.headline == MEAN and (len(self.splits) < 3 or not set(self.splits[1:]) <= self.data.rows.keys()):
            raise ValueError(
                f"`headline: mean`: expected at least two splits after the first, each with its `rows`, found {list(self.splits)}"
            )
        if self.positive is not None and self.positive not in self.labels:
            raise ValueError(f"`positive`: expected one of {list(self.labels)}, found {self.positive!r}")
        return self

    @property
    def marked_title(self) -> str:
        """The title as reports show it, e.g. `QNLI (subset)` if fewer rows than the official ones were read."""
        return f"{self.title} (subset)" if any(SUBSET in note for note in self.data.notes) else self.title

    @property
    def sizes(self) -> tuple[int, ...]:
        """Examples of each split that the headline score averages over; empty if it is that of one split."""
        return tuple(self.data.rows[name] for name in self.splits[1:]) if self.headline == MEAN else ()


class StageRecord(Record):
    kind: str
    key: str
    cached: bool
    seconds: Duration = Field(description="time it took to build, now or before it was cached")
    info: StageInfo = Field(default_factory=dict, description="what the stage reports: steps, losses, counts")
    code: Code | None = Field(
        default=None, description="the code that built it, even if cached now; null if not recorded"
    )


class ModelResult(Record):
    name: str = Field(description="e.g. `teacher`, `student`")
    precision: Literal["fp32", "int8", "avx2", "qdq"] = Field(
        description="`avx2`: int8 with 7-bit weights; `qdq`: int8 in portable operators"
    )
    architecture: str = Field(description="e.g. `6 x 384, 12 heads, FFN 1536`")
    parameters: Size
    embedding_parameters: Count
    flops_per_token: Size = Field(
        description="2 × multiply-adds per token at length 128, attention included; embeddings count as look-ups"
    )
    flops_per_example: Size = Field(description="the same at the task's mean length, per example")
    file_bytes: Size
    scores: dict[str, dict[str, Points]] = Field(
        description="reported split -> metric -> points, computed with ONNX Runtime on the whole split"
    )
    headline: Points
    types: dict[str, EntityScore] = Field(default_factory=dict, description="score per entity type, on the first split")
    delta: Delta | None = Field(None, description="null for the baseline itself")
    reliability: tuple[ReliabilityBin, ...] = Field(
        default=(), description="on the first split, the least confident first; empty if answers have no probability"
    )
    disagreements: tuple[Disagreement, ...] = Field(
        default=(),
        max_length=MOST_DISAGREEMENTS,
        description="up to ten disagreements with the baseline on the first split, those where both are most confident first; only of fp32 "
        "models, and where answers have a probability",
    )
    predictions: str = Field(
        description="array name in predictions.npz: float32 logits [example, class], or [word, label], in file order"
    )
    onnx: Runtime | None = None
    torch_eager: Runtime | None = None
    fidelity: Fidelity | None = Field(default=None, description="only of a quantized model; older results have none")
    info: ModelInfo = Field(
        default_factory=dict,
        description="parity, int8 and fp32 matmuls, what stayed fp32 and why, fidelity and signal-to-noise ratio per part on the tuning "
        "split",
    )
    code: Code | None = Field(
        default=None, description="the code that computed its predictions, maybe in an earlier run"
    )


class Result(Record):
    schema_version: Literal[1] = SCHEMA
    run: FileName = Field(description="name of the run directory")
    created: str = Field(description="ISO 8601, UTC")
    command: str = Field(description="the command line that reproduces it")
    recipe: RecipeRecord = Field(description="the resolved recipe")
    teacher: str
    student: str | None
    student_card: dict[str, Any] | None = Field(default=None, description="its fields; older results have none")
    seed: Seed
    task: TaskInfo
    machine: Machine
    versions: dict[str, str]
    code: Code | None = Field(
        default=None, description="the code that put the result together; older results have none"
    )
    origin: TeacherOrigin | None = Field(default=None, description="of the teacher; older results have none")
    student_origin: TeacherOrigin | None = Field(
        default=None, description="only of a student that starts from a checkpoint of its own, not from its teacher"
    )
    ensemble: EnsembleScore | None = Field(
        default=None, description="scores of several teachers as one; null if there is one teacher"
    )
    vocabulary: VocabularyRecord | None = Field(default=None, description="null if no stage reduces the vocabulary")
    pruning: tuple[PruningRecord, ...] = Field(default=(), description="one record per prune stage")
    similarity: LayerSimilarity | None = Field(
        default=None,
        description="of the student's layers to the teacher's; null if there is no other model, and in older results",
    )
    corpus: Corpus | None = Field(default=None, description="null if no stage reads plain text")
    stages: tuple[StageRecord, ...]
    models: Annotated[tuple[ModelResult, ...], Field(min_length=1)] = Field(
        description="the first is the baseline: the fp32 teacher on ONNX Runtime"
    )
    noise: tuple[Latency, ...] = Field((), description="A/A control: the baseline measured against itself")
    timed_by: Code | None = Field(
        default=None, description="the code that measured the latencies, maybe in an earlier run"
    )
    settings: Settings = Field(default_factory=dict, description="threads, precision, benchmark settings")

    @model_validator(mode="after")
    def _goes_together(self) -> Result:
        conflicts = contradictions(self.task.splits, self.task.metrics, self.models)
        if problems := [problem(where, "value_error", None, {"error": ValueError(text)}) for where, text in conflicts]:
            raise ValidationError.from_exception_data(type(self).__name__, problems)
        return self

    @property
    def teachers(self) -> str:
        """The teacher's name, or `a + b` for several."""
        return " + ".join(teacher.name for teacher in self.ensemble.teachers) if self.ensemble else self.teacher

    @property
    def final(self) -> ModelResult:
        """The model that ships: the last one made."""
        return self.models[-1]


def write_result(result: Result, folder: Path) -> Path:
    """Write `folder/result.json` atomically, and return its path."""
    path = folder / RESULT
    write_text(path, result.model_dump_json(indent=1) + "\n")
    return path


def read_result(path: str | Path) -> Result:
    """Read a `result.json`, or the one in a folder.

    Raises `CompressError` naming the file when it is missing, not JSON, or of another schema, and the field that is wrong.
    """
    path = Path(path)
    file = path / RESULT if path.is_dir() else path
    return _validate_result(file, read_record(file))


def read_results(file: Path) -> list[Result]:
    """Read a `result.json`, or the list of results that a report of several writes. Raises as `read_result`."""
    document = read_record(file)
    if not isinstance(document, list):
        return [_validate_result(file, document)]
    if not document:
        raise CompressError(f"{file}: an empty list, expected at least one result; name a finished run")
    return [_validate_result(file, item, (number,)) for number, item in enumerate(document)]


def _validate_result(file: Path, document: Any, where: tuple[str | int, ...] = ()) -> Result:
    try:
        return Result.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        parts = [part if str(part).isprintable() else ascii(part) for part in (*where, *first["loc"])]
        place = ".".join(map(str, parts)) or "the document"
        problem = first.get("ctx", {}).get("error") or first["msg"]
        raise CompressError(f"{file}: not a result of schema {SCHEMA}: {place}: {problem}") from None
