"""The nine GLUE tasks: their specs, the layout of the official files, and their numbers of rows.

Wang et al. 2018, arXiv:1804.07461. Label order is the hub's (`nyu-mll/glue`), which published checkpoints follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...errors import CompressError
from ...results import SUBSET
from ...spec.kinds import KindName, MetricName
from ...spec.task import Hub, TaskSpec
from ..reading.columns import Rows
from ..reading.delimited import read_table

REVISION = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
NLI = ("entailment", "not_entailment")


@dataclass(frozen=True)
class Layout:
    """The official files of a task: tab-separated, UTF-8, no quoting."""

    folder: str
    text: tuple[str, ...]
    label: str
    rows: dict[str, int]  # of the complete data: split -> examples
    digits: bool = False  # the file writes label ids, not names
    names: tuple[str, ...] | None = None  # of a file without a header
    broken_rows: int = 0  # known ragged rows of the official release, which loaders leave out
    files: dict[str, str] = field(default_factory=lambda: {"train": "train.tsv", "dev": "dev.tsv"})


PAIR = ("sentence1", "sentence2")
_MNLI_FILES = {"train": "train.tsv", "dev_matched": "dev_matched.tsv", "dev_mismatched": "dev_mismatched.tsv"}
_MNLI_ROWS = {"train": 392_702, "dev_matched": 9_815, "dev_mismatched": 9_832}
_COLA = ("source", "label", "star", "sentence")
LAYOUTS: dict[str, Layout] = {
    "cola": Layout("CoLA", ("sentence",), "label", {"train": 8_551, "dev": 1_043}, digits=True, names=_COLA),
    "sst2": Layout("SST-2", ("sentence",), "label", {"train": 67_349, "dev": 872}, digits=True),
    "mrpc": Layout("MRPC", ("#1 String", "#2 String"), "Quality", {"train": 3_668, "dev": 408}, digits=True),
    "qqp": Layout(
        "QQP",
        ("question1", "question2"),
        "is_duplicate",
        {"train": 363_846, "dev": 40_430},
        digits=True,
        broken_rows=10,
    ),
    "stsb": Layout("STS-B", PAIR, "score", {"train": 5_749, "dev": 1_500}),
    "mnli": Layout("MNLI", PAIR, "gold_label", _MNLI_ROWS, files=_MNLI_FILES),
    "qnli": Layout("QNLI", ("question", "sentence"), "label", {"train": 104_743, "dev": 5_463}),
    "rte": Layout("RTE", PAIR, "label", {"train": 2_490, "dev": 277}),
    "wnli": Layout("WNLI", PAIR, "label", {"train": 635, "dev": 71}, digits=True),
}


def _spec(
    name: str,
    title: str,
    text: tuple[str, ...],
    labels: tuple[str, ...] | None,
    metrics: tuple[MetricName, ...] = ("accuracy",),
    dev: str | dict[str, str] = "validation",
    kind: KindName = "classification",
) -> TaskSpec:
    hub = Hub(path="nyu-mll/glue", name=name, revision=REVISION, dev=dev)
    return TaskSpec(
        name=name, title=title, kind=kind, text=text, label="label", labels=labels, metrics=metrics, hub=hub
    )


_MNLI_DEV = {"dev_matched": "validation_matched", "dev_mismatched": "validation_mismatched"}
_SPECS = (
    _spec("cola", "CoLA", ("sentence",), ("unacceptable", "acceptable"), ("matthews",)),
    _spec("sst2", "SST-2", ("sentence",), ("negative", "positive")),
    _spec("mrpc", "MRPC", PAIR, ("not_equivalent", "equivalent"), ("accuracy", "f1")),
    _spec("qqp", "QQP", ("question1", "question2"), ("not_duplicate", "duplicate"), ("accuracy", "f1")),
    _spec("stsb", "STS-B", PAIR, None, ("pearson", "spearman"), kind="regression"),
    _spec("mnli", "MNLI", ("premise", "hypothesis"), ("entailment", "neutral", "contradiction"), dev=_MNLI_DEV),
    _spec("qnli", "QNLI", ("question", "sentence"), NLI),
    _spec("rte", "RTE", PAIR, NLI),
    _spec("wnli", "WNLI", PAIR, ("not_entailment", "entailment")),
)
GLUE: dict[str, TaskSpec] = {spec.name: spec for spec in _SPECS}


def aliases(spec: TaskSpec) -> dict[str, str] | None:
    """Return digit -> label name, for tasks whose official files contain digits."""
    if not LAYOUTS[spec.name].digits:
        return None
    return {str(index): name for index, name in enumerate(spec.labels or ())}


def official_paths(spec: TaskSpec, data_dir: Path) -> dict[str, Path]:
    """Return split -> file, train first. Raises `CompressError` if the task's folder does not exist."""
    layout = LAYOUTS[spec.name]
    folder = data_dir / layout.folder
    if not folder.is_dir():
        raise CompressError(
            f"{folder}: no such folder; the data directory must hold GLUE's own folders "
            f"({layout.folder}/train.tsv, …) or a saved `datasets` folder; leave it out to read the hub"
        )
    return {split: folder / file for split, file in layout.files.items()}


def read_official(spec: TaskSpec, paths: dict[str, Path]) -> tuple[dict[str, Rows], list[str]]:
    """Return the splits in the files at `paths`, in the official layout, and notes on rows left out."""
    layout = LAYOUTS[spec.name]
    rows, notes = {}, []
    for split, path in paths.items():
        header = layout.names is None
        table = read_table(path, header=header, names=layout.names, quoting=False, skip_ragged=layout.broken_rows)
        texts = tuple(table.column(name) for name in layout.text)
        rows[split] = Rows(table.place, table.unit, table.numbers, texts, table.column(layout.label), aliases(spec))
        if table.skipped:
            where = ", ".join(map(str, table.skipped))
            notes.append(f"{split}: {len(table.skipped)} broken rows left out, as official loaders do (lines {where})")
    return rows, notes


def completeness(spec: TaskSpec, counts: dict[str, int]) -> list[str]:
    """Return a note for each split whose number of rows is not the official one."""
    notes = []
    for split, official in LAYOUTS[spec.name].rows.items():
        count = counts[split]
        if count < official:
            notes.append(f"{split} has {count:,} of {official:,} rows: {SUBSET}")
        elif count > official:
            notes.append(f"{split} has {count:,} rows, more than the official {official:,}: not the official data")
    return notes


def is_glue(spec: TaskSpec) -> bool:
    """Whether `spec` is one of the nine (perhaps with fields overridden), not a user's task with the same name."""
    own = GLUE.get(spec.name)
    return own is not None and spec.files is None and spec.hub == own.hub
