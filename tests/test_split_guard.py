"""Training, calibration and search cannot reach the reported splits, neither by imports nor from their arguments."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from import_walk import PACKAGE, all_imports

from compress.pipeline import Listener, Request, plan_all
from compress.pipeline.plan import Context
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.results.reported import ReportedSource
from compress.spec.task import TaskSpec
from compress.tasks import TrainingData, load_training, resolve_task

# Code that reads or holds the reported splits; and its allowed users: measuring, its results, `compress verify`, and a plan's notes.
DOORS = ("compress.tasks.load_reported", "compress.tasks.ReportedData", "compress.pipeline.results.reported")
INNER = ("compress.tasks.loading", "compress.tasks.sources")
MEASURES = {
    "pipeline/results/reported.py",
    "pipeline/results/measure.py",
    "pipeline/results/ensemble.py",
    "pipeline/results/assemble.py",
    "pipeline/results/truncation.py",
    "pipeline/data_notes.py",
    "pipeline/run.py",
    "bundle/verifying/accuracy.py",
}
FIRST_OF_STAGES = ("pipeline/stages/registry.py", "pipeline/training/run.py")


def opens(name: str, doors: tuple[str, ...]) -> bool:
    return any(name == door or name.startswith(f"{door}.") for door in doors)


def test_only_what_measures_imports_the_reported_splits() -> None:
    users = {item.file for item in all_imports() if opens(item.name, DOORS) and not item.file.startswith("tasks/")}
    assert users == MEASURES
    inside = [str(item) for item in all_imports() if opens(item.name, INNER) and not item.file.startswith("tasks/")]
    assert not inside


def file_of(name: str) -> str | None:
    """Return the file that defines `name`, as given in an import."""
    words = name.split(".")[1:]
    while words:
        for file in ("/".join(words) + ".py", "/".join([*words, "__init__.py"])):
            if (PACKAGE / file).exists():
                return file
        words = words[:-1]
    return None


def reachable(files: Iterable[str]) -> set[str]:
    """Return `files` and all of our files that they import, also lazily."""
    seen, left = set(), [*files]
    while left:
        file = left.pop()
        if file not in seen:
            seen.add(file)
            left += [path for item in all_imports() if item.file == file and item.part and (path := file_of(item.name))]
    return seen


def test_no_stage_comes_to_what_measures_through_its_imports() -> None:
    """Checks the pipeline; the floors below cannot import it."""
    files = {file for file in reachable(FIRST_OF_STAGES) if file != "pipeline/__init__.py"}
    assert {
        "pipeline/stages/calibration.py",
        "pipeline/training/held_out.py",
        "pipeline/training/teacher_targets.py",
        "training/loop.py",
        "quantize/mixed_precision.py",
    } <= files
    assert not files & MEASURES


def test_what_trains_is_no_more_than_its_type_says(tmp_path: Path) -> None:
    data = load_training(*task(tmp_path), data_dir=None)
    assert type(data) is TrainingData
    assert not any("reported" in name for name in vars(data))


def texts_in(root: Any) -> set[str]:
    """Return every string that can be reached from `root` through attributes and containers."""
    texts: set[str] = set()
    seen: set[int] = set()
    left = [root]
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.add(value)
        elif id(value) not in seen and not isinstance(value, type):
            seen.add(id(value))
            keep.append(value)
            if isinstance(value, dict):
                left += [*value.keys(), *value.values()]
            elif isinstance(value, list | tuple | set | frozenset):
                left += [*value]
            elif type(value).__module__.startswith("compress"):
                left += [*vars(value).values()]
    return texts


keep: list[Any] = []  # so that no id is reused


def task(folder: Path) -> tuple[TaskSpec, Path | None]:
    """Write a task with forty examples per split; return its spec and folder."""
    for split in ("train", "dev"):
        rows = "".join(f"the {split} film {i} is {'good' if i % 2 else 'bad'},{i % 2}\n" for i in range(40))
        (folder / f"{split}.csv").write_text("text,label\n" + rows)
    (folder / "task.yaml").write_text(
        "name: own\ntext: [text]\nlabel: label\nmetrics: [accuracy]\nmax_length: 16\n"
        "files: {train: train.csv, dev: dev.csv}\n"
    )
    return resolve_task(str(folder / "task.yaml"))


def test_no_reported_text_can_be_reached_from_what_a_stage_is_given(tmp_path: Path) -> None:
    task(tmp_path)
    (plan,) = plan_all(Request(("int8",), (str(tmp_path / "task.yaml"),), teacher="bert-mini", root=tmp_path / "runs"))
    context = Context(plan.task, "fp32", 1, Listener())
    assert context.task.data.labels == ("0", "1")
    assert context.task.reported_rows(context.task.data.tuning) == {"dev": ()}
    texts = texts_in((plan, context))
    assert "the train film 0 is bad" in texts
    assert not {text for text in texts if text.startswith("the dev film")}
    assert "the dev film 0 is bad" in texts_in(ReportedSource.of(plan.task).data)
    assert not isinstance(plan.task, ReportedSource) and not issubclass(ReportedSource, TaskSource)


def test_a_stage_that_asks_for_a_reported_split_gets_none(tmp_path: Path) -> None:
    source = TaskSource(*task(tmp_path), data_dir=None)
    with pytest.raises(KeyError):
        source.encoded("dev", None, 16)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        _ = source.data.reported  # type: ignore[attr-defined]
