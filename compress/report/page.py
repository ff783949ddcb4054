"""Results -> the content of a report, ready for a template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..results import Result
from ..spec.kinds import KINDS
from . import recommendation
from .grouping.groups import Task, group
from .grouping.intervals import ONE_SEED, best_guess, how_over_seeds, named_on_tasks, over_seeds
from .grouping.predictions import find_predictions
from .pictures.plot_points import describe, shape_of
from .recommendation import Recommendation
from .sections import agreement, costs, overview, pruned_picture, reliability, sensitivity, sentences, similarity, units
from .sections.agreement import agreement_table, disagreement_tables
from .sections.copied_layers import copied_sentences
from .sections.costs import costs_table
from .sections.curves import Curves, curves_of
from .sections.details import Detail, details, environment
from .sections.fidelity import Section, section
from .sections.finetuning_choice import choice_sentences
from .sections.layer_mixes import mix_sentences
from .sections.scores import latency_table, main_table
from .sections.vocabularies import READING, vocabulary_sentences
from .text.cells import Table
from .text.words import join_words

SCORES = (
    "Scores are in points (0 to 100; correlations and Matthews × 100), through ONNX Runtime on whole splits.",
    "“Against {teacher}” is the difference to {fp32} on the same examples, with a 95% interval from a paired "
    "bootstrap; where the interval holds 0, the two are not distinguishable. Two examples are added of which one model answers each "
    "wrongly, where models differ on few: equal answers, too, have an interval with a width.",
)
FAMILIES = (
    "All differences to {teacher} on one task are one family of comparisons, corrected by Holm (1979): where the corrected p is 0.05 or "
    "more, a difference whose interval leaves out 0 is not distinguishable either. p is McNemar's exact one for accuracy with one seed, "
    "with several seeds that of their spread by Student's t, else that of the interval. Intervals are not corrected.",
)
QUESTIONS = (
    "Of questions whole contexts are drawn, each with all questions on it: these err together, and few contexts tell less than their "
    "questions would.",
)
TIMES = (
    "Times are of one forward pass: the median CPU time on one thread, which other work on the machine changes little, and "
    "beside it wall time, p50 / p90; fewer than 36 runs say no p90. In brackets the speed-up: the time of {fp32} on ONNX Runtime, "
    "measured in turns with the model, over the model's own. Models timed with several threads have wall time alone. PyTorch eager "
    "runs the same weights.",
    "The A/A line times the baseline against a copy of itself: differences of that size are noise. Where it, or wall time over "
    "CPU time, is off by more than 10%, the machine was busy: a line says which figures not to trust, and sentences leave them out.",
)
SEVERAL = (
    "A student of several teachers learnt the teachers' mean: of the probabilities that each gives, calibrated by its temperature; of "
    "scores, where the task asks for one. The student is compared with the first teacher, which is the baseline.",
)
UNTIMED = ("Latency was not measured.",)
SIZES = (
    "FLOPs are two per multiply-add: per token at length 128, per example at the task's mean length; look-ups in "
    "embedding tables are not counted. They are the architecture's: the fast graph computes the last layer for one token "
    "alone, so latency can fall by more than they do. Sizes are decimal megabytes.",
)

FAITHFUL = (
    "Fidelity is that of a quantized model to the fp32 model it was made from, on the first reported split. A flip is an "
    "example, or a word where words are labelled, that the two decide differently; rows count these in the order of the split's "
    "file, from 1, without a header.",
    "Calibration error is the expected one in 15 bins of equal width: how far confidence is from accuracy (Guo et al. "
    "2017, arXiv:1706.04599, section 3).",
    "Signal to noise is 10 · log10(Σ fp32² / Σ (fp32 − int8)²) of what a part gives, on up to 64 texts of the tuning split, "
    "padding left out: the part's own noise and that of all before it. Attention's matmuls of two activations, "
    "normalization and activation functions are fp32 in every form.",
)
SEARCHED = (
    "A searched mix of int8 and fp32 is judged on texts that are not of a reported split: points on the tuning split; decisions that "
    "change on 1,000 texts or more, or all there are; those beyond the tuning split are training texts, of which a model is surer. "
    "The share that is held against the goal is the median-unbiased estimate, near (flips − 1/3) / texts; its interval is "
    "Clopper and Pearson's.",
)


@dataclass(frozen=True)
class TaskPage:
    """One task's section."""

    anchor: str
    title: str
    data: str
    notes: tuple[str, ...]
    findings: tuple[str, ...]
    tradeoffs: tuple[str, ...]
    main: Table
    latency: Table | None
    costs: Table | None
    agreement: Table | None
    disagreements: tuple[Table, ...]
    fidelity: Section | None
    plot: str
    sizes: str
    curves: tuple[Curves, ...]
    details: tuple[Detail, ...]


@dataclass(frozen=True)
class Page:
    title: str
    lede: str
    warnings: tuple[str, ...]
    recommended: Recommendation | None
    overview: Table | None
    left_out: tuple[str, ...]  # of `overview`, in sentences
    tasks: tuple[TaskPage, ...]
    sensitivity: str
    reliability: str
    similarity: similarity.Section | None
    pruned: str
    environment: tuple[tuple[str, str], ...]
    reading: tuple[str, ...]


def tasks_of(results: Sequence[Result], folders: Sequence[Path] = ()) -> list[Task]:
    """Group results, with intervals over seeds from the predictions in `folders` if available."""
    return group(results, over_seeds(folders), best_guess(folders))


def page_of(tasks: Sequence[Task], folders: Sequence[Path] = (), recommended: Recommendation | None = None) -> Page:
    results = [result for task in tasks for result in task.results]
    over_tasks = overview.overview_table(tasks)
    pages = tuple(_task_page(task, number, folders) for number, task in enumerate(tasks))
    compared = similarity.section(tasks)
    agreeing = any(page.agreement for page in pages)
    own = (
        costs.READING if any(page.costs for page in pages) else (),
        agreement.READING if agreeing else (),
        overview.READING if over_tasks else (),
        recommendation.READING if recommended else (),
        similarity.READING if compared and compared.words else (),
    )
    return Page(
        title=_page_title(tasks),
        lede=sentences.lede(results),
        warnings=(
            *sentences.warnings(results, {shape for task in tasks for shape in task.shapes}),
            *(f"{line}." for line in (*overview.guess_sentences(tasks), *units.unit_sentences(tasks, folders))),
            *_without_answers(results, folders),
        ),
        recommended=recommended,
        overview=over_tasks,
        left_out=tuple(f"{line}." for line in overview.left_out_sentences(tasks)) if over_tasks else (),
        tasks=pages,
        sensitivity=sensitivity.describe(tasks),
        reliability=reliability.describe(tasks),
        similarity=compared,
        pruned=pruned_picture.describe(tasks),
        environment=tuple(environment(results)),
        reading=(*_reading_notes(tasks), *(line for lines in own for line in lines), *_seed_note(tasks, folders)),
    )


def _without_answers(results: Sequence[Result], folders: Sequence[Path]) -> list[str]:
    """Return a warning if predictions are missing."""
    gone = [result.run for result in results if find_predictions(result, folders) is None]
    if not gone:
        return []
    which = "any run" if len(gone) == len(results) else join_words(gone)
    return [f"The predictions of {which} are not at hand: nothing that needs them is shown or computed anew."]


def _page_title(tasks: Sequence[Task]) -> str:
    teachers = list(dict.fromkeys(result.teachers for task in tasks for result in task.results))
    names = [task.first.task.marked_title for task in tasks]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{', '.join(teachers)} compressed: {shown}"


def _reading_notes(tasks: Sequence[Task]) -> tuple[str, ...]:
    timed = any(task.shapes for task in tasks)
    faithful = any(model.fidelity for task in tasks for result in task.results for model in result.models)
    searched = any(sentences.goals(task) for task in tasks)
    teacher = sentences.teacher_word(tasks)
    taught = any(result.ensemble for task in tasks for result in task.results)
    cut = any(result.vocabulary for task in tasks for result in task.results)
    questions = any(KINDS[task.first.task.kind].unit == "question" for task in tasks)
    parts = (
        SCORES,
        FAMILIES if any(row.corrected and row.corrected.family > 1 for task in tasks for row in task.rows) else (),
        QUESTIONS if questions else (),
        SEVERAL if taught else (),
        TIMES if timed else UNTIMED,
        SIZES,
        FAITHFUL if faithful else (),
        SEARCHED if searched else (),
        READING if cut else (),
    )
    lines = (line for part in parts for line in part)
    fp32 = "the first teacher in fp32" if taught else "the fp32 teacher"
    return tuple(line.replace("{teacher}", teacher).replace("{fp32}", fp32) for line in lines)


def _seed_note(tasks: Sequence[Task], folders: Sequence[Path]) -> tuple[str, ...]:
    variants = [variant for task in tasks for variant in task.variants]
    single = [variant for variant in variants if len(variant.runs) == 1]
    how = how_over_seeds(variants, folders)
    if how is None:
        return (f"One seed: {ONE_SEED}.",) if single else ()
    times = "latencies the median over seeds, " if any(task.shapes for task in tasks) else ""
    several = (
        f"With several seeds, scores are the mean ± the sample standard deviation, {times}and "
        f"intervals come from the {how}."
    )
    return (several, f"With one seed ({named_on_tasks(single)}) {ONE_SEED}.") if single else (several,)


def _task_page(task: Task, number: int, folders: Sequence[Path]) -> TaskPage:
    info = task.first.task
    slug = re.sub(r"[^a-z0-9]+", "-", info.name.lower()).strip("-")
    return TaskPage(
        anchor=f"task-{number + 1}-{slug}",
        title=info.marked_title,
        data=sentences.data_line(task.first),
        notes=tuple(dict.fromkeys(note for result in task.results for note in result.task.data.notes)),
        findings=(
            *sentences.findings(task),
            *sentences.goals(task),
            *choice_sentences(task),
            *vocabulary_sentences(task),
            *copied_sentences(task),
            *mix_sentences(task),
        ),
        tradeoffs=tuple(sentences.tradeoffs(task)),
        main=main_table(task),
        latency=latency_table(task),
        costs=costs_table(task),
        agreement=agreement_table(task, folders),
        disagreements=tuple(disagreement_tables(task)),
        fidelity=section(task),
        plot=describe(task),
        sizes=describe(task, by_size=True) if shape_of(task) else "",
        curves=tuple(curves_of(task, folders)),
        details=tuple(details(task)),
    )
