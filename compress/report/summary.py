"""Short summaries of results, for the terminal and for the README."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..results import ALSO_IN, NEAR_TO, Result
from .grouping.groups import MAIN_SHAPES, Row, Shape, Task
from .page import tasks_of
from .pictures.plot_points import shape_of
from .sections.differences import difference_cell
from .sections.overview import Overall, guess_sentences, over_tasks
from .sections.scores import TEACHERS_MEAN, megabytes_of, score_of, taught_by, times_of
from .sections.sentences import busy, lede, teacher_word, warnings
from .sections.units import unit_sentences
from .text import markdown, numbers
from .text.cells import NOTHING, Cell, Column, Line, Table
from .text.words import headline_name

if TYPE_CHECKING:
    import rich.table


def summary_table(
    results: Sequence[Result], folders: Sequence[Path] = (), *, tasks: Sequence[Task] | None = None
) -> rich.table.Table:
    """Return every model of `results`, a section per task, with notes on the data below; for the end of `run`.

    `tasks`: `tasks_of(results, folders)`, if already computed.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    tasks = tasks or tasks_of(results, folders)
    shown_shapes = _shown_shapes(tasks)
    shapes = [numbers.shape(*shape) for shape in shown_shapes]
    notes = Text("\n".join(_notes(tasks, folders, shown_shapes, without=(NEAR_TO,))))
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, caption=notes if notes else None, caption_justify="left")
    times = [f"{_clock(tasks)} {' or '.join(shapes)}, ms"] if shapes else []
    columns = ("Model", "MB", "Score", f"Against {teacher_word(tasks)}", *times)
    for number, name in enumerate(columns):
        shown.add_column(name, justify="right" if number else "left", overflow="fold")
    for task in tasks:
        shown.add_section()
        shown.add_row(Text(f"{task.first.task.marked_title}: {headline_name(task.first.task)}"), style="bold underline")
        for row, cells in _terminal_rows(task):
            shown.add_row(*map(Text, cells[: len(columns)]), style="dim" if row.eager else "" if row.recipe else "bold")
        for label, points in _means(task):
            shown.add_row(*map(Text, (label, NOTHING, points, NOTHING, NOTHING)[: len(columns)]), style="dim")
    return shown


def doubts_latency(tasks: Sequence[Task]) -> bool:
    """Whether the table of `tasks` says that the machine was busy."""
    return bool(busy([result for task in tasks for result in task.results], _shown_shapes(tasks)))


def _shown_shapes(tasks: Sequence[Task]) -> list[Shape]:
    return list(dict.fromkeys(shape for task in tasks if (shape := shape_of(task))))


def _clock(tasks: Sequence[Task]) -> str:
    return " or ".join(dict.fromkeys("CPU" if task.cpu_time else "p50" for task in tasks))


def _means(task: Task) -> Iterator[tuple[str, str]]:
    """Yield (name, points) of the means that students of several teachers learnt."""
    for variant, ensembles in taught_by(task):
        yield f"{variant.label}, {TEACHERS_MEAN}", numbers.scores([each.headline for each in ensembles])


def _terminal_rows(task: Task) -> Iterator[tuple[Row, list[str]]]:
    """Yield rows with the time of one shape, and a second line where needed, to fit in 80 columns."""
    shape = shape_of(task)
    for row in task.rows:
        if row.eager and row.model is not task.baseline.model:
            continue
        time = str(times_of(task, row.latency(shape) if shape else None, row is task.baseline, wall=False))
        if row.eager:
            yield row, [row.label, NOTHING, NOTHING, NOTHING, time]
            continue
        delta = difference_cell(row.delta, row.corrected)
        difference = "\n".join(part for part in (delta.text, delta.note.replace(" (", "\n(")) if part)
        yield row, [row.label, megabytes_of(row), score_of(row, None), difference, time]


def markdown_table(results: Sequence[Result], folders: Sequence[Path] = (), *, link: str = "") -> str:
    """Return the teacher and each recipe's final model as Markdown, for the README; below it where the numbers come from, `link`, a
    sentence in Markdown that leads to the report, and, folded, notes on data and times, except overlaps of splits, which only the report
    lists.

    Several tasks with models of the same recipes share one table, with a column for each task's score.
    """
    tasks = tasks_of(results, folders)
    seeds = sorted({len(variant.runs) for task in tasks for variant in task.variants})
    source = f"{lede(results)} {' or '.join(map(str, seeds))} {'seed' if seeds == [1] else 'seeds'}.".strip()
    notes = _notes(tasks, folders, MAIN_SHAPES[:2], without=(ALSO_IN, NEAR_TO))
    if any(words in note for result in results for note in result.task.data.notes for words in (ALSO_IN, NEAR_TO)):
        notes.append("The report counts texts that also stand in train, or nearly")
    shapes = [shape for shape in MAIN_SHAPES[:2] if any(shape in task.shapes for task in tasks)]
    models = _shared_finals(tasks)
    if models:
        metrics = ", ".join(f"{task.first.task.marked_title} {headline_name(task.first.task)}" for task in tasks)
        timed = (
            f" Times: {tasks[0].first.task.marked_title}'s models; × is relative to the teacher in the same run."
            if shapes
            else ""
        )
        source = f"{source} Scores: {metrics}.{timed}"
    table = _wide_table(tasks, models, shapes) if models else _final_table(tasks, shapes)
    parts = [markdown.table(table), f"{markdown.escape(source)} {link}".rstrip()]
    if notes:
        below = markdown.escape(". ".join(note.rstrip(".") for note in notes))
        parts.append(f"<details><summary>Notes on the data and the times</summary>\n\n{below}.\n\n</details>")
    return "\n\n".join(parts)


def _shared_finals(tasks: Sequence[Task]) -> list[Overall]:
    """Return `_final_rows` over several tasks; empty for one task, or if tasks differ in their recipes."""
    if len(tasks) < 2:
        return []
    finals = [_final_rows(task) for task in tasks]
    shared = [
        overall
        for overall in over_tasks(tasks)
        if all(any(row is each for each in rows) for row, rows in zip(overall.rows, finals, strict=True))
    ]
    return shared if all(len(rows) == len(shared) for rows in finals) else []


def _wide_table(tasks: Sequence[Task], models: Sequence[Overall], shapes: Sequence[Shape]) -> Table:
    columns = (
        Column("Recipe", numeric=False),
        Column("Model", numeric=False),
        Column("MB"),
        *(Column(task.first.task.marked_title) for task in tasks),
        Column("Mean"),
        Column(f"Against {teacher_word(tasks)}"),
        *(Column(f"{_clock(tasks[:1])} {numbers.shape(*shape)}", "ms") for shape in shapes),
    )
    return Table("Results", columns, tuple(_wide_line(tasks[0], overall, shapes) for overall in models))


def _wide_line(first: Task, overall: Overall, shapes: Sequence[Shape]) -> Line:
    row = overall.rows[0]
    cells = (
        Cell(overall.recipe or "baseline"),
        Cell(overall.model),
        Cell(overall.megabytes),
        *(Cell(score_of(each, None)) for each in overall.rows),
        Cell(numbers.points(overall.headline)),
        difference_cell(overall.delta, overall.corrected),
        *(times_of(first, row.latency(shape), row is first.baseline, wall=False) for shape in shapes),
    )
    return Line(cells, "baseline" if overall.is_baseline else "model")


def _final_table(tasks: Sequence[Task], shapes: list[Shape]) -> Table:
    columns = (
        Column("Task", numeric=False),
        Column("Recipe", numeric=False),
        Column("Model", numeric=False),
        Column("MB"),
        Column("Score"),
        Column(f"Against {teacher_word(tasks)}"),
        *(Column(f"{_clock(tasks)} {numbers.shape(*shape)}", "ms") for shape in shapes),
    )
    return Table(
        "Results", columns, tuple(_final_line(task, row, shapes) for task in tasks for row in _final_rows(task))
    )


def _final_rows(task: Task) -> list[Row]:
    """Return the baselines, and the last model of each recipe."""
    last = {row.recipe: row for row in task.rows if not row.eager and not task.is_baseline(row)}
    return [*task.baselines, *last.values()]


def _final_line(task: Task, row: Row, shapes: list[Shape]) -> Line:
    heading = (
        Cell(task.first.task.marked_title, f"({headline_name(task.first.task)})"),
        Cell(row.recipe or "baseline"),
        Cell(row.name),
    )
    costs = (
        Cell(megabytes_of(row)),
        Cell(score_of(row, None)),
        difference_cell(row.delta, row.corrected),
    )
    times = (times_of(task, row.latency(shape), row is task.baseline, wall=False) for shape in shapes)
    return Line((*heading, *costs, *times), "model" if row.recipe else "baseline")


def _notes(
    tasks: Sequence[Task], folders: Sequence[Path], shapes: Collection[Shape], without: Sequence[str] = ()
) -> list[str]:
    """Return notes that belong next to the numbers, such as a subset, or different machines; notes on the data with words of `without` are
    only in the report."""
    results = [result for task in tasks for result in task.results]
    of_data = (
        f"{result.task.title}: {note}"
        for result in results
        for note in result.task.data.notes
        if not any(words in note for words in without)
    )
    return [
        *warnings(results, shapes),
        *guess_sentences(tasks),
        *unit_sentences(tasks, folders),
        *dict.fromkeys(of_data),
    ]
