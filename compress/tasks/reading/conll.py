"""Read files with one word and its labels per line, and a blank line between texts (CoNLL)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import CompressError, brief
from ...files.tabular import WORDS
from .tables import Table, lines_of, read_text, refuse

TAGS = "tags"  # name of the last column
# CoNLL-U's columns; forms are the words, universal parts of speech the tags.
UNIVERSAL = (
    "id",
    WORDS,
    "lemma",
    TAGS,
    "xpos",
    "feats",
    "head",
    "deprel",
    "deps",
    "misc",
)
_DOCUMENT = "-DOCSTART-"
_COMMENT = re.compile(r"#\s*[A-Za-z_][\w.:-]*\s*=\s")
_SPACES = re.compile("[ \t]+")  # words may contain other spaces


def read_conll(path: Path, names: Sequence[str] | None = None, *, labelled: bool = True) -> Table:
    """Return columns of lists, with each text's words or labels.

    `names`: of all columns of the file. The default is `tokens`, `column2` … and `tags`; or those of CoNLL-U, with the parts of speech as
    `tags`; or only `tokens` if words need not be `labelled` and there is one column. Columns are separated by tabs if the first line that
    does not begin with `#` has one, else by spaces. Raises `CompressError` with the lines that have another number of columns.
    """
    texts = list(_split_texts(lines_of(read_text(path)), universal=path.suffix.lower() == ".conllu"))
    if not texts:
        return Table(str(path), "line", (), {})
    universal = names is None and _is_universal(texts[0][1])
    names = UNIVERSAL if universal else _names(path, texts[0][1][0], names, labelled)
    ragged = [
        (start + index, f"expected {len(names)} fields, found {len(word)}")
        for start, words in texts
        for index, word in enumerate(words)
        if len(word) != len(names)
    ]
    if ragged and path.suffix.lower() == ".txt":
        ragged[0] = (ragged[0][0], f"{ragged[0][1]} (a .txt file holds a word and its label in each line)")
    refuse(str(path), "line", ragged)
    # In CoNLL-U, `2-3` is a span of words, `2.1` an omitted one.
    kept = [
        [(number, word) for number, word in enumerate(words, start) if not universal or word[0].isdecimal()]
        for start, words in texts
    ]
    columns = {name: [[word[index] for _, word in words] for words in kept] for index, name in enumerate(names)}
    lines = [[number for number, _ in words] for words in kept]
    return Table(str(path), "line", [start for start, _ in texts], columns, word_numbers=lines)


def _is_universal(words: list[list[str]]) -> bool:
    """Whether a text has CoNLL-U's columns."""
    return words[0][0][:1] == "1" and all(len(word) == len(UNIVERSAL) and word[0][:1].isdecimal() for word in words)


def _split_texts(lines: Sequence[str], *, universal: bool) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the line on which each text starts, and the fields of its words. `universal`: the file's suffix is CoNLL-U's."""
    tabs = "\t" in _first_word(lines)
    split = _by_tabs if tabs else _by_spaces
    words: list[list[str]] = []
    for number, line in enumerate([*lines, ""], start=1):
        if not words and _is_no_word(line, tab_separated=tabs or universal):
            continue
        if line.strip() and not line.startswith(_DOCUMENT):
            words.append(split(line))
        elif words:
            yield number - len(words), words
            words = []


def _first_word(lines: Sequence[str]) -> str:
    """Return the first line that is certainly a word; if all lines begin with `#`, the first that is not `# key = value`."""
    words = (line for line in lines if line.strip() and not line.startswith((_DOCUMENT, "#")))
    return next(words, None) or next(
        (line for line in lines if line.strip() and not _is_no_word(line, tab_separated=False)), ""
    )


def _is_no_word(line: str, *, tab_separated: bool) -> bool:
    """Whether a line before a text's first word is not a word: a document marker, or a comment such as `# sent_id = 1`; if columns are
    `tab_separated`, also a line such as `# newdoc` without one."""
    without_tab = tab_separated and line.startswith("#") and "\t" not in line
    return without_tab or line.startswith(_DOCUMENT) or _COMMENT.match(line) is not None


def _by_tabs(line: str) -> list[str]:
    return [field.strip(" ") for field in line.split("\t")]


def _by_spaces(line: str) -> list[str]:
    return _SPACES.split(line.strip(" \t"))


def _names(path: Path, fields: list[str], names: Sequence[str] | None, labelled: bool) -> list[str]:
    if len(fields) < 2 and not labelled:
        return [WORDS]
    if len(fields) < 2:
        raise CompressError(
            f"{path}: expected a word and its label in each line, separated by a tab or spaces, found "
            f"{brief(fields[0])}"
        )
    if names is None:
        return [WORDS, *(f"column{number}" for number in range(2, len(fields))), TAGS]
    if len(names) != len(fields):
        raise CompressError(f"{path}: `columns` names {len(names)} columns, the file has {len(fields)}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise CompressError(f"{path}: two columns are named {twice!r} in `columns`")
    return list(names)
