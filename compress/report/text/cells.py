"""Tables as text in cells, for Markdown, HTML and the terminal alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NOTHING = "–"


@dataclass(frozen=True)
class Cell:
    """`note` is a remark of less weight, such as an interval below its value."""

    text: str = ""
    note: str = ""

    def __str__(self) -> str:
        separator = " " if self.note.startswith("(") else ", "
        return separator.join(part for part in (self.text, self.note) if part)


def text_cells(*texts: str) -> tuple[Cell, ...]:
    return tuple(map(Cell, texts))


@dataclass(frozen=True)
class Column:
    text: str
    unit: str = ""
    numeric: bool = True

    def __str__(self) -> str:
        return f"{self.text}, {self.unit}" if self.unit else self.text


@dataclass(frozen=True)
class Line:
    """A row of a table."""

    cells: tuple[Cell, ...]
    kind: Literal["baseline", "model", "eager", "reference"] = "model"


@dataclass(frozen=True)
class Table:
    caption: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    headings: int = 1  # cells that are a line's heading
