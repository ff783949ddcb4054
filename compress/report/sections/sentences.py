"""The numbers of a report in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...results import Latency, Result
from ...results.timing import headline, warning_of
from ...stats.flip_goals import in_words, outcome
from ..grouping.conditions import timed_threads
from ..grouping.groups import MAIN_SHAPES, Row, Shape, Task, baseline_word, seeds_in_words, title
from ..grouping.labels import letter, machine_of, name_of
from ..grouping.machines import by_task, lettered_machines, machines
from ..text import numbers
from ..text.words import join_words
from .differences import chance_note
from .scores import TEACHERS_MEAN, taught_by
from .tradeoffs import tradeoff_sentence

AT = {(1, 32): "one text of 32 tokens", (1, 128): "one of 128", (0, 0): "the task's own lengths"}


def findings(task: Task) -> list[str]:
    """Return one sentence per recipe: what its last model keeps, and what it saves."""
    sentences = []
    for variant in task.variants:
        mine = [row for row in task.rows if row.recipe == variant.label and not row.eager]
        if mine:
            sentences.append(_finding(task, mine[-1], task.baseline_of(mine[-1])))
    return sentences


def goals(task: Task) -> list[str]:
    """Return a sentence for each model whose mix of int8 and fp32 was searched: whether it meets its goal, and on how many texts that was
    judged."""
    several = any(len(variant.seeds) > 1 for variant in task.variants)
    return [
        f"{variant.label}, {title(model)}{f', seed {run.seed}' if several else ''}: the search's goal of at most "
        f"{in_words(model.info['goal'])} was {'met' if model.info['goal_met'] else 'missed'}, with {outcome(model.info)}."
        for variant in task.variants
        for run in variant.runs
        for model in run.models
        if model.info.get("goal")
    ]


def _finding(task: Task, row: Row, baseline: Row) -> str:
    teacher = task.teacher_of(row.recipe)
    kept = f"{row.label}: {numbers.points(row.headline)} points where {teacher} has {numbers.points(baseline.headline)}"
    if baseline.headline > 0:
        kept += f" ({numbers.share(row.headline / baseline.headline)})"
    delta = row.delta
    if delta:
        kept += f", a difference of {numbers.signed(delta.points)} ({numbers.signed(delta.low)} to {numbers.signed(delta.high)})"
        kept += f", {words}" if (words := chance_note(delta, row.corrected)) else ""
    saved = f"Its file is {numbers.percent(row.model.file_bytes / baseline.model.file_bytes)} of {teacher}'s"
    timed = dict(_trusted_latencies(task, row, MAIN_SHAPES))
    speeds = [
        f"{numbers.times(headline(latency, cpu=task.cpu_time)[1])} on {_text_words(shape, timed)}"
        for shape, latency in timed.items()
    ]
    clock = "in CPU time on one thread, " if task.cpu_time else ""
    speed = f"; its speed, {clock}on the same runtime, is {join_words(speeds)}" if speeds else ""
    return f"{kept}. {saved}{speed}.{_ensemble_sentence(task, row)}"


def _text_words(shape: Shape, timed: Collection[Shape]) -> str:
    """Return what was timed in this shape; `one of 128` only after `one text of 32 tokens`."""
    if shape == (1, 128) and (1, 32) not in timed:
        return "one text of 128 tokens"
    return AT.get(shape, numbers.shape(*shape))


def _trusted_latencies(task: Task, row: Row, shapes: Iterable[Shape]) -> list[tuple[Shape, Latency]]:
    """Return those of `shapes` in which `row` was timed, except those that are not to be trusted."""
    doubted = task.in_doubt(row)
    return [(shape, latency) for shape in shapes if shape not in doubted and (latency := row.latency(shape))]


def _ensemble_sentence(task: Task, row: Row) -> str:
    """Return a sentence on the score of the mean of several teachers, which the student learnt."""
    for variant, ensembles in taught_by(task):
        if variant.label == row.recipe:
            points = numbers.points(sum(each.headline for each in ensembles) / len(ensembles))
            names = join_words([teacher.name for teacher in ensembles[0].teachers])
            return f" {TEACHERS_MEAN.capitalize()}, of {names}, which the student learnt, has {points} points."
    return ""


def teacher_word(tasks: Sequence[Task]) -> str:
    """Return the baseline's name in headings over several tasks: `the first teacher` if one of them has several."""
    return baseline_word(variant for task in tasks for variant in task.variants)


def tradeoffs(task: Task) -> list[str]:
    """Return a sentence for each model that is smaller than its teacher in one respect and not in another."""
    return [text for row in task.rows if not row.eager and (text := _tradeoff(task, row, task.baseline_of(row)))]


def _tradeoff(task: Task, row: Row, baseline: Row) -> str:
    if row is baseline:
        return ""
    mine, theirs = row.model, baseline.model
    first = next(iter(_trusted_latencies(task, row, ((1, 128), *task.shapes))), None)
    return tradeoff_sentence(
        row.label,
        teacher=task.teacher_of(row.recipe),
        parameters=mine.parameters / theirs.parameters,
        flops=mine.flops_per_token / theirs.flops_per_token,
        file_size=mine.file_bytes / theirs.file_bytes,
        latency=None if first is None else (numbers.shape(*first[0]), 1 / headline(first[1], cpu=task.cpu_time)[1]),
    )


def lede(results: Sequence[Result]) -> str:
    """Return a line on where the times, or else the scores, were measured; empty for several machines, which are a warning instead."""
    timed = [result for result in results if timed_threads([result])] or results
    several = machines(timed)
    if len(several) > 1 or lettered_machines(results):
        return ""
    threads = timed_threads(results)
    parts = [several[0].cpu, ", ".join(several[0].isa)]
    parts += [f"{threads[0]} {'thread' if threads[0] == 1 else 'threads'}"] if len(threads) == 1 else []
    versions = {run.versions.get("onnxruntime") for run in results} - {None}
    parts += [f"ONNX Runtime {version}" for version in versions] if len(versions) == 1 else []
    return f"Measured on {', '.join(part for part in parts if part)}."


def data_line(result: Result) -> str:
    """Format e.g. `Rows: train 46,165, tuning 2,000, dev 872 (data from files). Scores are on the whole of dev.`"""
    info = result.task
    rows = ", ".join(f"{split} {count:,}" for split, count in info.data.rows.items())
    source = SOURCES.get(info.data.source, info.data.source)
    on = join_words(list(info.splits[1:] if info.sizes else info.splits))
    mean = "; the headline score is the mean over these" if info.sizes else ""
    return f"Rows: {rows} (data from {source}). Scores are on the whole of {on}{mean}."


SOURCES = {"files": "files", "hub": "the hub", "saved": "a saved data set", "synthetic": "the embedded generator"}


def warnings(results: Sequence[Result], shapes: Collection[Shape] = ()) -> list[str]:
    """Return what a reader must know before comparing anything in the report, which has the times of `shapes`."""
    lines = []
    threads = timed_threads(results)
    if len(machines(results)) > 1:
        lines.append(_machines_sentence(results))
    if len(threads) > 1:
        lines.append(
            f"Latency was measured with {join_words([str(count) for count in threads])} threads: compare only models of equal threads."
        )
    runtimes = sorted({run.versions.get("onnxruntime", "unknown") for run in results})
    if len(runtimes) > 1:
        lines.append(f"These runs used different versions of ONNX Runtime: {join_words(runtimes)}.")
    return [*lines, *busy(results, shapes)]


def _machines_sentence(results: Sequence[Result]) -> str:
    """Return the letters of the machines, what was run on each, and whose times there are."""
    known, parts, clocks = machines(results), [], []
    for index, machine in enumerate(known):
        here = [result for result in results if machine_of(result) == machine.kind]
        ran = _tasks_and_seeds(here, results)
        parts.append(f"[{letter(index)}] {machine.cpu}: {ran}; trained in {_precisions(here)}.")
        clocks += [letter(index)] if timed_threads(here) else []
    times = {0: "", 1: f" All times are of [{''.join(clocks)}]."}.get(
        len(clocks), " Latencies of different machines cannot be compared."
    )
    return f"These runs were made on {len(known)} different machines. {' '.join(parts)}{times}"


def _tasks_and_seeds(here: Sequence[Result], results: Sequence[Result]) -> str:
    """Return the tasks that were run `here`, with the seeds and recipes of those of which others of `results` were run elsewhere, e.g.
    `SST-2, seeds 0 and 1 of MRPC and CoLA (distilbert)`."""
    titles: dict[tuple[tuple[int, ...], tuple[str, ...]], list[str]] = {}
    everywhere = by_task(results)
    for name, runs in by_task(here).items():
        marked = runs[0].task.marked_title
        if len(runs) == len(everywhere[name]):
            titles.setdefault(((), ()), []).append(marked)
            continue
        recipes: dict[tuple[int, ...], list[str]] = {}
        for recipe in dict.fromkeys(map(name_of, runs)):
            recipes.setdefault(tuple(sorted({run.seed for run in runs if name_of(run) == recipe})), []).append(recipe)
        is_one = len(recipes) == 1 and {*map(name_of, runs)} == {*map(name_of, everywhere[name])}
        for seeds, own in recipes.items():
            titles.setdefault((seeds, () if is_one else tuple(own)), []).append(marked)
    whole = titles.pop(((), ()), [])
    parts = [join_words(whole)] if whole else []
    for (seeds, own), named in titles.items():
        parts.append(f"{seeds_in_words(seeds)} of {join_words(named)}" + (f" ({join_words(own)})" if own else ""))
    return ", ".join(parts)


def _precisions(results: Sequence[Result]) -> str:
    return join_words(sorted({str(result.settings.get("precision")) for result in results}))


def busy(results: Sequence[Result], shapes: Collection[Shape]) -> list[str]:
    """Return a line for each run whose times of `shapes` indicate that the machine was busy, with the figures not to trust."""
    lines = [(_run_name(run, results), text) for run in results if (text := warning_of(run, shapes))]
    return [text if len(results) == 1 else f"{name}: {text}" for name, text in lines]


def _run_name(run: Result, results: Sequence[Result]) -> str:
    """Return the run's name; with its machine's letter or its threads, if another of `results` has the name, as one of another machine."""
    namesakes, known = (
        [other for other in results if other.run == run.run],
        [machine.kind for machine in machines(results)],
    )
    parts = [f"[{letter(known.index(machine_of(run)))}]"] if len(machines(namesakes)) > 1 else []
    if len(timed_threads(namesakes)) > 1:
        parts += [f"({count} thread{'s' if count > 1 else ''})" for count in timed_threads([run])]
    return " ".join([run.run, *parts])
