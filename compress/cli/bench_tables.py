"""What `bench` prints: the tables of its page, what not to trust, and how far each profile is from its floor."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.table

    from ..report.bench import Measurements
    from ..report.tables import Cell, Table


def print_measurements(measured: Measurements) -> None:
    """Every measurement, then the operators of every profile."""
    from ..report.bench.profiles import profiled
    from ..report.bench.tables import main_table
    from .screen import console

    out = console()
    out.print(_shown(main_table(measured)))
    for warning in measured.warnings():
        out.print(warning, style="yellow", markup=False)
    for each in profiled(measured):
        out.print(f"\n{each.table.caption}", markup=False)
        out.print(_shown(each.table))
        for line in each.words:
            out.print(line, markup=False)


def _shown(table: Table) -> rich.table.Table:
    """A report's table on a terminal, units and remarks on lines of their own."""
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=None, pad_edge=False)
    for column in table.columns:
        words = Text("\n".join(part for part in (column.text, column.unit) if part))
        shown.add_column(words, justify="right" if column.numeric else "left", overflow="fold")
    for line in table.lines:
        shown.add_row(*map(_words, line.cells), style="dim" if line.kind == "reference" else "")
    return shown


def _words(cell: Cell) -> str:
    from rich.markup import escape

    return escape("\n".join(part for part in (cell.text, cell.note) if part))
