"""Plain text that a sentence encoder is distilled on: no pairs, no scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compress.corpus.files import ANY_SUFFIX, file_lines, is_text
from compress.errors import CompressError
from compress.spec.kinds import KindName
from compress.spec.task import TaskSpec

from .columns import Rows


def is_plain_text(kind: KindName | None, path: Path) -> bool:
    """Whether tasks of this kind read the file as a text a line; others read a .txt as a word a line."""
    return kind == "embedding" and is_text(path)


def text_file(corpus: Sequence[str]) -> str:
    """The one text file that `--corpus` names. CompressError: several, or something else."""
    if len(corpus) > 1:
        raise CompressError(f"--corpus: expected one text file in place of --train, found {len(corpus)}; join them")
    if not is_text(Path(corpus[0])):
        raise CompressError(
            f"--corpus: expected a text file ({ANY_SUFFIX}) in place of --train, found {corpus[0]}; folders and data sets do not serve "
            "there"
        )
    return corpus[0]


def check_scored(option: str, kind: KindName | None, path: Path) -> None:
    """Raises `CompressError` where plain text is named for a split that is measured."""
    if is_plain_text(kind, path):
        raise CompressError(
            f"{option}: expected pairs of texts with a score, found plain text, which only train may be"
        )


def read_plain_text(path: Path, spec: TaskSpec) -> Rows:
    """The lines that are not blank, in order, two by two, without scores; the last of an odd number is left out, with a note.

    Raises `CompressError` for fewer than two lines, and as `file_lines`.
    """
    lines = [line for line in file_lines(path) if line]
    pairs = len(lines) // 2
    if not pairs:
        raise CompressError(f"{path}: expected two lines of text at least, found {len(lines)}")
    odd = f"the last of {len(lines):,} lines is left out, for lines are read two by two"
    return Rows(
        str(path),
        "pair",
        range(1, pairs + 1),
        (lines[: 2 * pairs : 2], lines[1::2]),
        [None] * pairs,
        notes=(odd,) if len(lines) % 2 else (),
    )
