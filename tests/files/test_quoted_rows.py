"""Quotes after spaces in rows of a .csv."""

from __future__ import annotations

import csv

import pytest

from compress.files.quoted_rows import QuotedRows


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('a, "b, c"\n', ["a", "b, c"]),
        (' a, "b", c\n', [" a", "b", " c"]),  # only the spaces before a quote are no text
        (' "a, b",  "c"\r\n', ["a, b", "c"]),
        ('"a, ""b""", "c ""d"""\n', ['a, "b"', 'c "d"']),
        ('a, b,"c"\n', ["a", " b", "c"]),
        ('a, "b" and c\n', ["a", ' "b" and c']),  # quotes that are text
        ('a, "b" and "c"\n', ["a", ' "b" and "c"']),
        ('"a, ""b, c",d\n', ['a, "b, c', "d"]),
        ('" ""a"" b",c\n', [' "a" b', "c"]),
        ('"a\n, ""b""",c\n', ['a\n, "b"', "c"]),
    ],
)
def test_a_quote_after_spaces_begins_a_field_if_it_can(line: str, expected: list[str]) -> None:
    assert list(QuotedRows(line.splitlines(keepends=True), ",")) == [expected]


@pytest.mark.parametrize("line", ['a, "b\n', 'size 5, "x, y\n', 'a, "b\nc",d\n'])
def test_a_lone_quote_after_spaces_is_refused(line: str) -> None:
    with pytest.raises(csv.Error, match="a quote after a space"):
        list(QuotedRows(line.splitlines(keepends=True), ","))


def test_between_tabs_such_quotes_are_text() -> None:
    assert list(QuotedRows(['a\t "b, c"\n', 'a\t "b\n'], "\t")) == [["a", ' "b, c"'], ["a", ' "b']]


def test_lines_are_counted_as_they_are_read() -> None:
    rows = QuotedRows(['a, "b"\n', '"c\n', 'd",e\n'], ",")
    assert [(row, rows.line_num) for row in rows] == [(["a", "b"], 1), (["c\nd", "e"], 3)]
