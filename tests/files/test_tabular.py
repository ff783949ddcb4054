"""Detection of a file's column delimiter."""

from __future__ import annotations

import pytest

from compress.files.tabular import delimiter_of


@pytest.mark.parametrize(
    ("suffix", "first", "columns", "expected"),
    [
        (".csv", "text,label", None, ","),
        (".csv", "text;label", None, ";"),
        (".csv", "text\tlabel", None, "\t"),
        (".csv", "text", None, ","),
        (".csv", "a; b,label", None, ","),
        (".csv", '"a, b";label', None, ";"),
        (".csv", "a; b; c,label", 2, ","),
        (".csv", '"a text; that goes on', 2, ","),
        (".csv", '"a text; that goes on', None, ","),
        (".tsv", "a;b", 2, "\t"),
        (".csv", "text,label", 1, ","),
        (".csv", "text", 1, ","),
    ],
)
def test_the_delimiter_is_the_one_that_alone_parts_the_first_line(
    suffix: str, first: str, columns: int | None, expected: str
) -> None:
    assert delimiter_of(suffix, first, columns) == expected
