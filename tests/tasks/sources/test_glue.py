from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from whole import load_task

from compress.errors import CompressError
from compress.spec.task import Files, TaskSpec
from compress.tasks import BUILTIN_TASKS, fingerprint, resolve_task
from compress.tasks.sources.glue import GLUE, LAYOUTS, is_glue

PAIRS = [name for name, spec in GLUE.items() if len(spec.text) == 2]


def every_text(data) -> list[tuple[str, ...]]:
    parts = [data.train, data.tuning]
    return sorted(row for part in parts for row in zip(*part.texts, strict=True))


@pytest.mark.parametrize("name", GLUE)
def test_every_row_is_read_with_its_odd_characters_intact(name: str, glue: Path, odd: list[str]) -> None:
    data = load_task(GLUE[name], None, glue)
    expected = sorted((text, f"b {i}") if name in PAIRS else (text,) for i, text in enumerate(odd))
    assert every_text(data) == expected
    first = next(iter(data.reported.values()))
    assert list(first.texts[0]) == [f"{text} again" for text in odd]  # dev keeps the order of the file
    assert data.source == "files"


@pytest.mark.parametrize(
    ("name", "labels", "dev"),
    [
        ("cola", ("unacceptable", "acceptable"), [0, 1, 0, 1, 0, 1]),
        ("sst2", ("negative", "positive"), [0, 1, 0, 1, 0, 1]),
        ("mrpc", ("not_equivalent", "equivalent"), [0, 1, 0, 1, 0, 1]),
        ("qqp", ("not_duplicate", "duplicate"), [0, 1, 0, 1, 0, 1]),
        ("mnli", ("entailment", "neutral", "contradiction"), [0, 1, 2, 0, 1, 2]),
        ("qnli", ("entailment", "not_entailment"), [0, 1, 0, 1, 0, 1]),
        ("rte", ("entailment", "not_entailment"), [0, 1, 0, 1, 0, 1]),
        ("wnli", ("not_entailment", "entailment"), [0, 1, 0, 1, 0, 1]),
    ],
)
def test_label_ids_follow_the_official_order(name: str, labels: tuple[str, ...], dev: list[int], glue: Path) -> None:
    data = load_task(GLUE[name], None, glue)
    assert data.labels == labels
    split = next(iter(data.reported.values()))
    assert split.labels.dtype == np.int64
    assert split.labels.tolist() == dev


def test_stsb_is_regression(glue: Path) -> None:
    data = load_task(GLUE["stsb"], None, glue)
    dev = data.reported["dev"].labels
    assert data.labels == ()
    assert dev.dtype == np.float32
    assert dev.tolist() == [0.0, 0.75, 1.5, 2.25, 3.0, 3.75]


def test_mnli_reports_both_dev_sets_matched_first(glue: Path) -> None:
    assert list(load_task(GLUE["mnli"], None, glue).reported) == ["dev_matched", "dev_mismatched"]


def test_official_metrics() -> None:
    metrics = {name: spec.metrics for name, spec in GLUE.items()}
    assert metrics.pop("cola") == ("matthews",)
    assert metrics.pop("stsb") == ("pearson", "spearman")
    assert metrics.pop("mrpc") == metrics.pop("qqp") == ("accuracy", "f1")
    assert set(metrics.values()) == {("accuracy",)}


def test_fewer_rows_than_official_are_noted(glue: Path) -> None:
    notes = load_task(GLUE["mnli"], None, glue).notes
    assert "train has 6 of 392,702 rows: a subset" in notes
    assert "dev_mismatched has 6 of 9,832 rows: a subset" in notes


def test_more_rows_than_official_are_noted(glue: Path) -> None:
    rows = "".join(f"{i}\tpremise {i}\thypothesis\t{i % 2}\n" for i in range(72))
    (glue / "WNLI/dev.tsv").write_text("index\tsentence1\tsentence2\tlabel\n" + rows)
    notes = load_task(GLUE["wnli"], None, glue).notes
    assert "dev has 72 rows, more than the official 71: not the official data" in notes


def test_dev_texts_that_stand_in_train_are_noted(glue: Path) -> None:
    path = glue / "SST-2/dev.tsv"
    path.write_bytes(path.read_bytes().replace(b" again", b"", 2))
    assert "2 of 6 dev texts also stand in train" in load_task(GLUE["sst2"], None, glue).notes


def test_windows_line_ends_are_not_text(glue: Path) -> None:
    path = glue / "RTE/dev.tsv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_task(GLUE["rte"], None, glue).reported["dev"].labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_broken_rows_of_the_official_qqp_file_are_left_out_and_noted(glue: Path) -> None:
    path = glue / "QQP/train.tsv"
    path.write_bytes(path.read_bytes() + b"99\t1\t2\tonly a question\n")
    data = load_task(GLUE["qqp"], None, glue)
    assert len(data.train) + len(data.tuning) == 6
    assert "train: 1 broken rows left out, as official loaders do (lines 8)" in data.notes


def test_ragged_rows_elsewhere_are_an_error(glue: Path) -> None:
    path = glue / "RTE/train.tsv"
    path.write_bytes(path.read_bytes() + b"99\tonly a premise\n")
    with pytest.raises(CompressError, match=r"RTE/train.tsv: line 8: expected 4 fields, found 2"):
        load_task(GLUE["rte"], None, glue)


def test_unknown_label_names_file_and_line(glue: Path) -> None:
    path = glue / "MNLI/dev_matched.tsv"
    path.write_bytes(path.read_bytes().replace(b"\tneutral\n", b"\t-\n", 1))
    with pytest.raises(CompressError, match=r"dev_matched.tsv: line 3: unknown label '-'; known: entailment, neutral"):
        load_task(GLUE["mnli"], None, glue)


def test_missing_folder_and_file(glue: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = tmp_path_factory.mktemp("empty")
    for function in (load_task, fingerprint):
        with pytest.raises(CompressError, match=r"SST-2: no such folder; the data directory must hold GLUE's own"):
            function(GLUE["sst2"], None, empty)
    (glue / "SST-2/dev.tsv").unlink()
    for function in (load_task, fingerprint):
        with pytest.raises(CompressError, match=r"SST-2/dev.tsv: no such file"):
            function(GLUE["sst2"], None, glue)


def test_a_users_task_of_the_same_name_is_not_glue() -> None:
    own = TaskSpec(name="rte", text=("a",), label="b", metrics=("accuracy",), files=Files(train="t.csv", dev="d.csv"))
    assert not is_glue(own)
    assert is_glue(GLUE["rte"].model_copy(update={"max_length": 64}))


def test_resolve_task_by_name() -> None:
    assert resolve_task("sst2") == (GLUE["sst2"], None)
    assert len(BUILTIN_TASKS) == 12
    with pytest.raises(
        CompressError, match=re.escape("no task 'sst-2', and no task file, which ends in .yaml; did you mean `sst2`?")
    ):
        resolve_task("sst-2")
    with pytest.raises(CompressError, match="did you mean `sst2`"):
        resolve_task("SST-2")


@pytest.mark.shared
@pytest.mark.parametrize("name", GLUE)
def test_row_counts_of_the_real_files(name: str, real_glue: Path) -> None:
    """Complete tasks have exactly the official rows and no note; the notes of the three subsets say what is missing."""
    data = load_task(GLUE[name], None, real_glue)
    counts = {"train": len(data.train) + len(data.tuning)} | {key: len(part) for key, part in data.reported.items()}
    notes = [note for note in data.notes if "subset" in note or "official" in note]
    subsets = {
        "qnli": ["train has 18,869 of 104,743 rows: a subset"],
        "qqp": ["train has 43,806 of 363,846 rows: a subset", "dev has 8,402 of 40,430 rows: a subset"],
        "mnli": ["train has 46,165 of 392,702 rows: a subset", "dev_mismatched has 1,000 of 9,832 rows: a subset"],
    }
    assert notes == subsets.get(name, [])
    if name not in subsets:
        assert counts == LAYOUTS[name].rows
