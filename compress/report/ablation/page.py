"""An ablation as a page: its findings in sentences, its table and picture, and what was run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from ..grouping.groups import group
from ..grouping.intervals import ONE_SEED, best_guess
from ..pictures.drawing import inline
from ..render import html, template
from ..sections.details import environment
from ..sections.differences import NOT_DISTINGUISHABLE
from ..sections.overview import guessed_sentences
from ..sections.sentences import data_line, lede, warnings
from ..text import numbers
from ..text.cells import Table
from ..text.words import join_words
from .compare import Ablation
from .plot import describe
from .tables import main_table, runs_table

READING = (
    "Scores are in points (0 to 100; correlations and Matthews × 100) of the fp32 student, through ONNX Runtime on "
    "whole splits; of several seeds, the mean ± the sample standard deviation.",
    "Below each score is its difference to the full recipe on the same examples and seeds, with a 95% interval from a "
    "paired bootstrap; where the interval holds 0, the two are not distinguishable. The differences on a task, and those of the means, are "
    "each one family of comparisons, corrected by Holm (1979): where the corrected p is 0.05 or more, they are not distinguishable either.",
)
SEVERAL_SEEDS = (
    "Intervals are for new examples and new seeds: the bootstrap's over examples, widened by the spread of the seeds with "
    "Student's t."
)
SEVERAL_TASKS = "For the mean over tasks, the examples of every task are resampled by themselves; seeds are compared by their means."


@dataclass(frozen=True)
class Page:
    title: str
    lede: str
    warnings: tuple[str, ...]
    findings: tuple[str, ...]
    table: Table
    data: tuple[str, ...]
    notes: tuple[str, ...]
    reading: tuple[str, ...]
    plot: str
    environment: tuple[tuple[str, str], ...]
    command: str
    recipe: str
    runs: Table


def page_of(ablation: Ablation) -> Page:
    firsts = list({run.task.name: run for run in ablation.full.runs}.values())
    return Page(
        title=f"{ablation.title}: what each {'part' if ablation.parts else 'student'} is worth",
        lede=_lede(ablation),
        warnings=(
            *warnings(ablation.results),
            *guesses(ablation),
            *([f"One seed: {ONE_SEED}."] if len(ablation.seeds) == 1 else []),
        ),
        findings=tuple(findings(ablation)),
        table=main_table(ablation),
        data=tuple(f"{run.task.marked_title}. {data_line(run)}" for run in firsts),
        notes=tuple(f"{run.task.marked_title}: {note}" for run in firsts for note in run.task.data.notes),
        reading=tuple(_reading_notes(ablation)),
        plot=describe(ablation),
        environment=tuple(environment(ablation.results)),
        command=ablation.command,
        recipe=yaml.safe_dump(ablation.first.recipe, sort_keys=False, allow_unicode=True, width=100),
        runs=runs_table(ablation),
    )


def markdown_ablation(page: Page) -> str:
    return template("ablation.md.j2").render(page=page).strip() + "\n"


def html_ablation(page: Page, plot: str) -> str:
    return html("ablation.html.j2", page=page, svg=inline(plot))


def findings(ablation: Ablation) -> Iterator[str]:
    """Yield sentences on which rows differ from the full recipe, and whether they do as published."""
    others = [(entry, entry.mean.delta) for entry in ablation.entries if entry.mean.delta]
    for sign, what in ((-1, "Worse"), (1, "Better")):
        moved = [
            (entry, delta) for entry, delta in others if entry.mean.is_more_than_chance and delta.points * sign > 0
        ]
        moved.sort(key=lambda pair: -abs(pair[1].points))
        if moved:
            yield f"{what} than the full recipe: {join_words([f'“{e.label}” ({numbers.signed(d.points)})' for e, d in moved])}."
    same = [f"“{entry.label}”" for entry, _ in others if not entry.mean.is_more_than_chance]
    if same:
        yield f"Not distinguishable from the full recipe: {join_words(same)}."
    yield from _against_published(ablation)


def guesses(ablation: Ablation) -> list[str]:
    """Return a sentence for each task on which the teacher does not beat a constant answer, where the predictions are at hand."""
    tasks = group(ablation.full.runs, lambda variant, name: None, best_guess(ablation.folders))
    return [f"{line}." for line in guessed_sentences(tasks, counts=True)]


def _against_published(ablation: Ablation) -> Iterator[str]:
    published = ablation.published
    if published is None:
        return
    parts = []
    for word, several in (("agrees", "agree"), ("disagrees", "disagree"), (NOT_DISTINGUISHABLE, NOT_DISTINGUISHABLE)):
        labels = [f"“{entry.label}”" for entry in ablation.entries if ablation.direction(entry) == word]
        if labels:
            parts.append(f"{join_words(labels)} {word if len(labels) == 1 else several}")
    yield f"Direction against the published ablation ({published.source}): {'; '.join(parts)}."
    yield (
        f"The published differences are of another teacher, student and data ({published.what}): compare their "
        "direction and order, not their size."
    )


def _lede(ablation: Ablation) -> str:
    first, seeds = ablation.first, ablation.seeds
    who = f"{first.teachers} to {first.student}" if first.student else first.teachers
    return f"{who}, {len(seeds)} {'seed' if len(seeds) == 1 else 'seeds'}. {lede(ablation.results)}".strip()


def _reading_notes(ablation: Ablation) -> Iterator[str]:
    yield from READING
    if len(ablation.seeds) > 1:
        yield SEVERAL_SEEDS
    if len(ablation.tasks) > 1:
        yield SEVERAL_TASKS
    stages = [kind for stage in ablation.first.recipe.get("stages", ()) for kind in stage]
    labels = {entry.label for entry in ablation.entries}
    if "general" in stages:
        yield "Losses and layer map are varied on the task alone: the general stage keeps its own."
    if any(label.startswith("without intermediate") for label in labels):
        yield "Without a distill stage the stage after it takes over its passes, so that the student is trained as long."
    if "without augment" in labels:
        yield (
            "Without augmentation the passes over the fewer examples are more, so that the student is trained as long."
        )
