"""The printed output of `bench`: its tables, warnings, and how far each profile is from its floor."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.table

    from ..report.bench import Measurements
    from ..report.text.cells import Cell, Table


def print_measurements(measured: Measurements) -> None:
    """Print every measurement, then the operators of every profile."""
    from ..report.bench.profiles import profile_sections
    from ..report.bench.tables import main_table, memory_table
    from .screen import console

    out = console()
    for table in (main_table(measured), memory_table(measured)):
        out.print(_to_rich_table(table), "")
    for warning in measured.warnings():
        out.print(warning, style="yellow")
    for each in profile_sections(measured):
        out.print(f"\n{each.table.caption}")
        out.print(_to_rich_table(each.table))
        for line in each.words:
            out.print(line)


def _to_rich_table(table: Table) -> rich.table.Table:
    """Convert a report's table for a terminal, with units and remarks on lines of their own. Numbers are never broken, however narrow it
    is."""
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=None, pad_edge=False)
    for index, column in enumerate(table.columns):
        words = Text("\n".join(part for part in (column.text, column.unit) if part))
        cells = [words, *(Text(_cell_text(line.cells[index])) for line in table.lines)]
        whole = max((len(word) for cell in cells for word in cell.plain.split()), default=0) if column.numeric else None
        shown.add_column(words, justify="right" if column.numeric else "left", overflow="fold", min_width=whole)
    for line in table.lines:
        shown.add_row(*(Text(_cell_text(cell)) for cell in line.cells), style="dim" if line.kind == "reference" else "")
    return shown


def _cell_text(cell: Cell) -> str:
    return "\n".join(part for part in (cell.text, cell.note) if part)
