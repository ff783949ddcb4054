"""The tables of an ablation, for the page and for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sections.differences import NOT_DISTINGUISHABLE, difference_cell
from ..text import numbers
from ..text.cells import NOTHING, Cell, Column, Line, Table, text_cells
from ..text.words import headline_name
from .compare import Ablation, Entry, Measure

if TYPE_CHECKING:
    import rich.table

CHANCE = "≈ "


def main_table(ablation: Ablation, *, narrow: bool = False) -> Table:
    """Return a line per row, a column per task, their mean if there are several, and the published difference.

    `narrow`: only the mean, if there is one, has an interval; a task's difference that may be chance has `≈` before it.
    """
    several = len(ablation.tasks) > 1
    columns = [Column("Variant", numeric=False)]
    columns += [Column(info.marked_title, headline_name(info)) for info in ablation.tasks.values()]
    columns += [Column("Mean of the tasks")] if several else []
    columns += [Column("Published", "difference")] if ablation.published else []
    on_task = _score_cell if narrow and several else _cell
    lines = []
    for entry in ablation.entries:
        cells = [Cell(entry.label), *(on_task(entry.tasks[task]) for task in ablation.tasks)]
        cells += [_cell(entry.mean)] if several else []
        cells += [_published_cell(ablation, entry)] if ablation.published else []
        lines.append(Line(tuple(cells), "baseline" if entry is ablation.full else "model"))
    lines.append(_teacher(ablation, several))
    varied = "the full recipe, and " + " and ".join(
        [*(["without its parts"] if ablation.parts else []), *(["with other students"] if ablation.students else [])]
    )
    return Table(f"{ablation.title}: {varied}", tuple(columns), tuple(lines))


def _teacher(ablation: Ablation, several: bool) -> Line:
    """Return the (first) teacher's own scores, for scale, and the share of its mean that the full recipe's student keeps."""
    scores, mean = ablation.teacher
    name = "first teacher fp32" if ablation.first.ensemble else "teacher fp32"
    cells = [Cell(name), *(Cell(numbers.scores(list(scores[task]))) for task in ablation.tasks)]
    if several:
        whole = sum(mean) / len(mean)
        kept = f"full keeps {100 * ablation.full.mean.mean / whole:.1f} %" if whole > 0 else ""
        cells.append(Cell(numbers.scores(list(mean)), kept))
    cells += [Cell(NOTHING)] if ablation.published else []
    return Line(tuple(cells), "model")


def _cell(measure: Measure) -> Cell:
    return Cell(
        numbers.scores(list(measure.scores)),
        str(difference_cell(measure.delta, measure.corrected)) if measure.delta else "",
    )


def _score_cell(measure: Measure) -> Cell:
    delta = measure.delta
    sign = "" if measure.is_more_than_chance else CHANCE
    return Cell(numbers.scores(list(measure.scores)), f"{sign}{numbers.signed(delta.points)}" if delta else "")


def _published_cell(ablation: Ablation, entry: Entry) -> Cell:
    difference = ablation.difference(entry)
    if ablation.published and entry is ablation.full:
        return Cell(numbers.points(ablation.published.full), "full")
    return Cell(NOTHING if difference is None else numbers.signed(difference))


def runs_table(ablation: Ablation) -> Table:
    columns = (
        Column("Variant", numeric=False),
        Column("Task", numeric=False),
        Column("Seed"),
        Column("Score"),
        Column("Run", numeric=False),
    )
    lines = [
        Line(text_cells(entry.label, run.task.marked_title, str(run.seed), numbers.points(run.final.headline), run.run))
        for entry in ablation.entries
        for run in entry.runs
    ]
    return Table("Every run", columns, tuple(lines))


def ablation_table(ablation: Ablation) -> rich.table.Table:
    """Return the main table for a terminal, with differences below the scores."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    table = main_table(ablation, narrow=True)
    caption = Text(f"{CHANCE}{NOT_DISTINGUISHABLE} from the full recipe") if len(ablation.tasks) > 1 else None
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    for column in table.columns:
        title = Text("\n".join(part for part in (column.text, column.unit) if part))
        shown.add_column(title, justify="right" if column.numeric else "left", no_wrap=column.numeric)
    for line in table.lines:
        cells = ["\n".join(part for part in (cell.text, *cell.note.split(", ")) if part) for cell in line.cells]
        shown.add_row(*map(Text, cells), style="bold" if line.kind == "baseline" else "")
    return shown
