"""Damaged results and predictions: reported, listed, compared and shipped, or refused without a traceback."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import Case, any_value, check, damaged_bytes, damaged_document

from compress.bundle.shipping.source import read_source
from compress.cli.info import _runs
from compress.errors import CompressError
from compress.report import collect, markdown_table, summary_table, write_report
from compress.report.ablation import ablation_of, write_ablation
from compress.report.page import page_of, tasks_of
from compress.report.render import markdown_report
from compress.results import PREDICTIONS, RESULT, Result
from compress.results.similarity import LayerSimilarity

pytestmark = pytest.mark.end_to_end

SLICE, ALL = 60, 10_000
DRAWN = 250  # one case in this many is drawn, because drawing is slowest
EXAMPLES = 40
REPORTS = Path(__file__).parents[2] / "reports"
NUMBERS = count(1)
COMPARED = LayerSimilarity(
    model="student", texts=9, tokens=99, states=((1.0, 0.4), (0.5, 0.9), (0.3, 0.8)), attention=((0.2,), (None,))
)
SOURCES = ("minilm-int8-auto", "pruned-half", "vocabulary", "albert-forms")


def originals() -> list[Result]:
    """Return real results, of each task kind and of a search, for which predictions are made up."""
    return [collect([REPORTS / name])[0] for name in SOURCES]


def predictions(result: Result) -> tuple[Result, dict[str, np.ndarray]]:
    """Return the result with scores of 100, and matching predictions."""
    rng = np.random.default_rng(0)
    classes = len(result.task.labels)
    gold = rng.permutation(EXAMPLES) % classes if classes else rng.permutation(EXAMPLES).astype(np.float32)
    logits = np.eye(classes, dtype=np.float32)[gold.astype(np.int64)] if classes else gold[:, None]
    perfect = {split: dict.fromkeys(result.task.metrics, 100.0) for split in result.task.splits}
    changes = {"scores": perfect, "headline": 100.0}
    models = tuple(model.model_copy(update=changes) for model in result.models)
    arrays = {f"{model.predictions}/{split}": logits for model in models for split in result.task.splits}
    arrays |= {f"gold/{split}": gold for split in result.task.splits}
    return result.model_copy(update={"models": models, "similarity": COMPARED}), arrays


def cases(folder: Path, first: int, number_of: int) -> Iterator[Case]:
    whole = [predictions(result) for result in originals()]
    texts = [json.loads(result.model_dump_json()) for result, _ in whole]
    for number in range(first, first + number_of):
        rng = random.Random(f"results/{number}")
        chosen = rng.randrange(len(whole))
        run = folder / whole[chosen][0].run
        if not run.exists():
            write_run(run, texts[chosen], whole[chosen][1])
        what = rng.choice(("result", "result", "result", "bytes", "predictions", "array"))
        said = damage(run, what, texts[chosen], dict(whole[chosen][1]), number, rng)
        yield f"{number} {run.name} {what} {said}", lambda run=run, number=number: use(run, drawn=number % DRAWN == 0)
        shutil.rmtree(run)


def write_run(run: Path, document: Any, arrays: dict[str, np.ndarray]) -> None:
    """Write a run, and its twin with another seed beside it."""
    twin = run.with_name("twin")
    for place, changes in ((run, {}), (twin, {"run": "twin", "seed": document["seed"] + 1})):
        place.mkdir(parents=True, exist_ok=True)
        (place / RESULT).write_text(json.dumps({**document, **changes}), encoding="utf-8")
        np.savez(place / PREDICTIONS, allow_pickle=False, **arrays)
        labels = [f"{model['name']}-{model['precision']}" for model in document["models"]]
        paths = {label: {"onnx": f"{'0' * 64}/x", "checkpoint": f"{'0' * 64}/x"} for label in labels}
        (place / "models.json").write_text(json.dumps(paths))


def damage(run: Path, what: str, document: Any, arrays: dict[str, np.ndarray], number: int, rng: random.Random) -> str:
    if what == "result":
        said, changed = damaged_document(document, number)
        (run / RESULT).write_text(json.dumps(changed), encoding="utf-8")
    elif what == "array":
        name = rng.choice(list(arrays))
        changes = (
            any_array(rng),
            arrays[name][::2],
            arrays[name].astype(str),
            arrays[name] * np.nan,
            arrays[name][None],
        )
        arrays[name] = rng.choice(changes)
        said = f"{name} {arrays[name].dtype} {arrays[name].shape}"
        np.savez(run / PREDICTIONS, allow_pickle=False, **arrays)
    else:
        file = run / (RESULT if what == "bytes" else PREDICTIONS)
        said, content = damaged_bytes(file.read_bytes(), number)
        file.write_bytes(content)
    return said


def any_array(rng: random.Random) -> np.ndarray:
    value = any_value(rng)
    try:
        array = np.array([value] * EXAMPLES)
    except (ValueError, OverflowError):
        return np.zeros(0)
    return array if array.dtype.kind in "fiub" else np.zeros((EXAMPLES, 0))


def use(run: Path, *, drawn: bool) -> None:
    """Call everything that reads a run, each despite earlier refusals; raise the first refusal."""
    twin, root = run.with_name("twin"), run.parent
    refusals = []
    for reader in (
        lambda: report([run], drawn=drawn),
        lambda: report([run, twin], drawn=drawn),
        lambda: ablate(run, twin, drawn=drawn),
        lambda: listed(root),
        lambda: shipped(run, root),
    ):
        try:
            reader()
        except CompressError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def report(runs: list[Path], *, drawn: bool) -> None:
    results = collect(runs)
    summary_table(results, runs)
    markdown_table(results, runs)
    tasks = tasks_of(results, runs)
    markdown_report(page_of(tasks, runs), "digest")
    if drawn:
        write_report(results, fresh(runs[0]), folders=runs)


def ablate(run: Path, twin: Path, *, drawn: bool) -> None:
    first, second = (collect([place]) for place in (run, twin))
    alike = [second[0].model_copy(update={"seed": first[0].seed})]
    ablated = ablation_of(
        {"full": first, "without it": alike}, title="x", command="compress ablate", folders=[run, twin]
    )
    if drawn:
        write_ablation(ablated, fresh(run))


def listed(root: Path) -> None:
    assert "twin" in {row["run"] for row in _runs(root)}


def shipped(run: Path, root: Path) -> None:
    """Ship as far as the artefacts, which do not exist."""
    with pytest.raises(CompressError) as refused:
        read_source(run, root / ".store", None)
    if "give `compress run` again" not in str(refused.value):
        raise refused.value


def fresh(run: Path) -> Path:
    """Return a folder that does not exist yet."""
    return run.parent.with_name(f"{run.parent.name}-out") / str(next(NUMBERS))


@pytest.mark.parametrize("number", range(len(SOURCES)))
def test_whole_runs_are_read(tmp_path: Path, number: int) -> None:
    result, arrays = predictions(originals()[number])
    write_run(tmp_path / "runs" / result.run, json.loads(result.model_dump_json()), arrays)
    use(tmp_path / "runs" / result.run, drawn=False)


def test_damaged_results_are_read_or_refused(tmp_path: Path) -> None:
    check(cases(tmp_path / "runs", 1, SLICE), SLICE)


@pytest.mark.slow
def test_many_damaged_results_are_read_or_refused(tmp_path: Path) -> None:
    check(cases(tmp_path / "runs", SLICE + 1, ALL - SLICE), ALL - SLICE)
