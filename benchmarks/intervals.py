"""Recompute the intervals of committed reports with the current statistics, where the records allow it.

    python benchmarks/intervals.py reports/albert-starts reports/tinybert-small-intermediate

For folders of reports whose predictions are not available. An ablation over several seeds: the variance over examples is what the old
interval contained besides the seeds' variance; the seeds' comes from the scores. Resampling S - 1 of S seeds gave a variance of the
examples' shared part, two thirds (S = 3) of the part that seeds do not share, and s² / S; so an interval from predictions would be about as
wide or narrower. A quantized model whose flips are on record: the changed answers are known, and the unchanged ones follow from the scores
(half of the wrong ones are assigned to each class, which affects neither accuracy nor F1). Other intervals stay as they are.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from compress.errors import CompressError
from compress.files.atomic import write_text
from compress.metrics import ClassHeadline
from compress.report import collect, write_report
from compress.report.ablation.compare import Ablation, Entry, Measure
from compress.report.ablation.page import SEVERAL_SEEDS, SEVERAL_TASKS, findings
from compress.report.ablation.plot import describe, picture
from compress.report.sections.differences import difference_cell
from compress.results import Data, ModelResult, Result, TaskInfo
from compress.results.fidelity import Delta
from compress.stats.significance import NORMAL_QUANTILE, half_width, mcnemar, paired_bootstrap

DERIVED = (
    "These intervals were derived from scores and older intervals on record, not from predictions, by which they would be about "
    "as wide or narrower."
)
UNCHANGED = "No answer changed where the difference is 0.00 on MRPC: its interval is that of equal answers with the scores on record."
_OLD_READING = "a paired bootstrap over both; where the interval holds 0, the two are not distinguishable."
_NEW_READING = _OLD_READING.replace(" over both", "")
_OLD_TASKS = "For the mean over tasks, the examples and seeds of every task are resampled by themselves."
Models = tuple[np.ndarray, np.ndarray, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+")
    for folder in parser.parse_args().folder:
        changes = of_ablation(folder) if (folder / "ablation.json").exists() else of_results(folder)
        print("\n".join(f"{folder.name}: {change}" for change in changes))


def of_ablation(folder: Path) -> list[str]:
    """Rewrite an ablation's four files; return lines for the conclusions that changed."""
    document = json.loads((folder / "ablation.json").read_text(encoding="utf-8"))
    if "intervals" in document:
        raise CompressError(f"{folder}: its intervals were made again before; take the report's first version")
    page = (folder / "ablation.md").read_text(encoding="utf-8")
    old = json.loads(json.dumps(document))
    several = len(document["seeds"]) > 1
    for row in document["rows"][1:]:
        (_over_seeds if several else _unchanged)(document["rows"][0], row, document["tasks"], page)
    document["intervals"] = DERIVED if several else UNCHANGED
    _rewrite(folder, old, document)
    return [
        f"“{now['label']}” on {place}: {difference_cell(_delta(was_at))} -> {difference_cell(_delta(now_at))}"
        for was, now in zip(old["rows"][1:], document["rows"][1:], strict=True)
        for place, was_at, now_at in zip(
            [*was["tasks"], "mean"],
            [*was["tasks"].values(), was["mean"]],
            [*now["tasks"].values(), now["mean"]],
            strict=True,
        )
        if str(difference_cell(_delta(was_at))) != str(difference_cell(_delta(now_at)))
    ]


def _over_seeds(full: dict[str, Any], row: dict[str, Any], tasks: dict[str, Any], page: str) -> None:
    shared = []
    for task, measure in row["tasks"].items():
        gaps = np.subtract(measure["scores"], full["tasks"][task]["scores"])
        shared.append(max(0.0, _variance(measure["difference"]) - gaps.var(ddof=1) / len(gaps)))
        _set(measure, float(half_width(gaps, shared[-1])))
    gaps = np.subtract(row["mean"]["scores"], full["mean"]["scores"])
    _set(row["mean"], float(half_width(gaps, sum(shared) / len(shared) ** 2)))


def _unchanged(full: dict[str, Any], row: dict[str, Any], tasks: dict[str, Any], page: str) -> None:
    """Recompute for one seed: where no answer changed, set the interval of equal answers, and update that of the mean over tasks."""
    measures = row["tasks"]
    empty = [task for task, measure in measures.items() if not any(measure["difference"].values())]
    for task in empty:
        examples = int(re.findall(r"^MRPC\. .*dev ([\d,]+) ", page, re.MULTILINE)[0].replace(",", ""))
        models = equal_answers(tuple(tasks[task]), examples, measures[task]["mean"])
        _, low, high = paired_bootstrap(ClassHeadline(tuple(tasks[task])), *models)
        measures[task]["difference"].update(low=low, high=high)
    if empty:
        variance = sum(_variance(measure["difference"]) for measure in measures.values()) / len(measures) ** 2
        _set(row["mean"], NORMAL_QUANTILE * variance**0.5)


def equal_answers(metrics: tuple[str, ...], examples: int, headline: float) -> Models:
    """Return two models with the same answers and this mean of accuracy and F1."""
    wrong, positive = np.meshgrid(np.arange(1, examples), np.arange(examples), indexing="ij")
    points = 50 * (1 - wrong / examples + 2 * positive / (2 * positive + wrong))
    places = np.argwhere((np.abs(points - headline) < 1e-9) & (wrong + positive <= examples))
    if metrics != ("accuracy", "f1") or not len(places):
        raise CompressError(f"expected a mean of accuracy and F1 of {examples} examples, found {headline} of {metrics}")
    errors, right = int(places[0][0]) + 1, int(places[0][1])
    gold, answer = _agreeing(right, examples - errors - right, errors)
    return _logits(answer), _logits(answer), gold


def _agreeing(right_positive: int, right_negative: int, wrong: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (gold, answer) of examples on which two models agree."""
    of_wrong = np.arange(wrong) % 2
    gold = np.concatenate([np.ones(right_positive), np.zeros(right_negative), of_wrong]).astype(np.int64)
    answer = gold.copy()
    answer[right_positive + right_negative :] = 1 - of_wrong
    return gold, answer


def _logits(classes: np.ndarray) -> np.ndarray:
    return np.eye(2, dtype=np.float32)[classes]


def _variance(difference: dict[str, float]) -> float:
    return ((difference["high"] - difference["low"]) / 2 / NORMAL_QUANTILE) ** 2


def _set(measure: dict[str, Any], half: float) -> None:
    difference = measure["difference"]
    difference.update(low=difference["points"] - half, high=difference["points"] + half)


def _delta(measure: dict[str, Any]) -> Delta | None:
    return Delta(**measure["difference"], mcnemar_p=None) if measure["difference"] else None


def ablation_on_record(document: dict[str, Any]) -> Ablation:
    """Return an ablation from its document, enough for its findings and picture; its runs have no models."""
    tasks = {"sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B", "cola": "CoLA", "rte": "RTE"}
    runs = tuple(
        Result.model_construct(
            seed=seed,
            student=document["student"],
            recipe={"paper": document["paper"]},
            task=TaskInfo.model_construct(
                name=task, title=tasks[task], metrics=tuple(metrics), data=Data.model_construct(notes=())
            ),
        )
        for task, metrics in document["tasks"].items()
        for seed in document["seeds"]
    )
    entries = []
    for row in document["rows"]:
        measures = {task: Measure(tuple(each["scores"]), _delta(each)) for task, each in row["tasks"].items()}
        entries.append(Entry(row["label"], measures, Measure(tuple(row["mean"]["scores"]), _delta(row["mean"])), runs))
    return Ablation(document["title"], tuple(entries), document["command"], folders=())


def _rewrite(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Replace every cell, finding and picture of the old document on the pages with the new one's."""
    was, now = ablation_on_record(old), ablation_on_record(new)
    for row, entry in zip(new["rows"], now.entries, strict=True):
        row["direction"] = now.direction(entry)
    svg = (folder / "ablation.svg").read_text(encoding="utf-8").rstrip("\n")
    several = len(old["seeds"]) > 1
    reading = f"{SEVERAL_SEEDS} {DERIVED}" if several else UNCHANGED
    for name, first, last in (("ablation.md", "* ", "\n"), ("ablation.html", "<li>", "</li>\n")):
        text = (folder / name).read_text(encoding="utf-8")
        text = text.replace(svg, picture(now)) if name == "ablation.html" else text
        text = _replaced(text, describe(was), describe(now), folder / name)
        if (before := list(findings(was))) != (after := list(findings(now))):
            lines = ("".join(f"{first}{line}{last}" for line in each) for each in (before, after))
            text = _replaced(text, *lines, folder / name)
        text = _cells(text, was, now, folder / name)
        text = _replaced(text, _OLD_READING, f"{_NEW_READING}{last}{first}{reading}", folder / name)
        write_text(folder / name, text.replace(_OLD_TASKS, SEVERAL_TASKS) if several else text)
    write_text(folder / "ablation.svg", picture(now) + "\n")
    write_text(folder / "ablation.json", json.dumps(new, indent=1, ensure_ascii=False) + "\n")


def _cells(text: str, was: Ablation, now: Ablation, file: Path) -> str:
    """Replace the cells of the rows in order, searching for each after the one before."""
    place = 0
    for before, after in zip(was.entries[1:], now.entries[1:], strict=True):
        place = text.index(f"{before.label}</th>" if file.suffix == ".html" else f"| {before.label} |", place)
        means = [(before.mean, after.mean)] if len(before.tasks) > 1 else []
        for old, new in [*((before.tasks[task], after.tasks[task]) for task in before.tasks), *means]:
            cell, other = str(difference_cell(old.delta)), str(difference_cell(new.delta))
            place = text.index(cell, place)
            text = text[:place] + other + text[place + len(cell) :]
            place += len(other)
    return text


def _replaced(text: str, old: str, new: str, file: Path) -> str:
    if old not in text:
        raise CompressError(f"{file}: does not say {old[:80]!r}; it is of another version of the report's code")
    return text.replace(old, new)


def of_results(folder: Path) -> list[str]:
    """Rewrite a report whose quantized models have their flips on record; return lines for what changed."""
    results, lines = collect([folder]), []
    renewed = []
    for run in results:
        models = tuple(_with_flips(run, model) for model in run.models)
        renewed.append(run.model_copy(update={"models": models}))
        for was, now in zip(run.models, models, strict=True):
            if (
                was.fidelity
                and now.fidelity
                and str(difference_cell(was.fidelity.delta)) != str(difference_cell(now.fidelity.delta))
            ):
                title = f"{run.recipe['name']} {run.task.title} int8 against its fp32"
                lines.append(f"{title}: {difference_cell(was.fidelity.delta)} -> {difference_cell(now.fidelity.delta)}")
    if lines:
        write_report(renewed, folder)
    return lines


def _with_flips(run: Result, model: ModelResult) -> ModelResult:
    """Return the model with the intervals from its flips, if they and the scores determine all answers."""
    fidelity = model.fidelity
    if fidelity is None or fidelity.flips is None or run.task.metrics not in (("accuracy",), ("accuracy", "f1")):
        return model
    reference = next(other for other in run.models if other.predictions == fidelity.reference)
    models, metric = answers(run, model, reference), ClassHeadline(run.task.metrics)
    for output, of_model in zip(models, (reference, model), strict=False):
        if abs(metric(output, models[2]) - of_model.headline) > 1e-6:
            raise CompressError(f"{run.run}: its flips and scores do not go together")
    points, low, high = paired_bootstrap(metric, *models)
    p = mcnemar(*(output.argmax(axis=1) == models[2] for output in models[:2])) if len(run.task.metrics) == 1 else None
    delta = Delta(points=points, low=low, high=high, mcnemar_p=p)
    changed: dict[str, Any] = {"fidelity": fidelity.model_copy(update={"delta": delta})}
    return model.model_copy(update=changed | ({"delta": delta} if reference is run.models[0] else {}))


def answers(run: Result, model: ModelResult, reference: ModelResult) -> Models:
    """Return the logits of the fp32 and the int8 model, and gold, from the flips on record and the fp32 scores."""
    if model.fidelity is None:
        raise ValueError(f"{model.predictions} has no fidelity")
    fidelity, labels = model.fidelity, list(run.task.labels)
    flips = np.array(
        [[labels.index(flip.fp32), labels.index(flip.int8)] for flip in fidelity.flipped], dtype=np.int64
    ).reshape(-1, 2)
    gold = np.array(
        [pair[int(flip.gold == "int8")] for pair, flip in zip(flips, fidelity.flipped, strict=True)], dtype=np.int64
    )
    scores = reference.scores[fidelity.split]
    right = round(scores["accuracy"] * fidelity.examples / 100)
    wrong = fidelity.examples - right
    share = scores["f1"] / 100 if "f1" in scores else 2 * (right // 2) / (2 * (right // 2) + wrong)
    positive = round(share * wrong / 2 / (1 - share)) if wrong else right // 2
    of_flips = gold == flips[:, 0]
    known = [int((of_flips & (gold == 1)).sum()), int((of_flips & (gold == 0)).sum()), int((~of_flips).sum())]
    rest, answer = _agreeing(positive - known[0], right - positive - known[1], wrong - known[2])
    both = [np.concatenate([flips[:, place], answer]) for place in (0, 1)]
    return _logits(both[0]), _logits(both[1]), np.concatenate([gold, rest])


if __name__ == "__main__":
    main()
