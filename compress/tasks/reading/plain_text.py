"""Plain text for distilling a sentence encoder: no pairs, no scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...corpus.files import ANY_SUFFIX, file_lines, is_text
from ...errors import CompressError
from ...spec.kinds import KindName
from .columns import Rows


def is_plain_text(kind: KindName | None, path: Path) -> bool:
    """Whether tasks of this kind read the file as one text per line; others read a .txt as one word per line."""
    return kind == "embedding" and is_text(path)


def text_file(corpus: Sequence[str]) -> str:
    """Return the one text file in `--corpus`. Raises `CompressError` for several, or something else."""
    if len(corpus) > 1:
        raise CompressError(f"--corpus: expected one text file in place of --train, found {len(corpus)}; join them")
    if not is_text(Path(corpus[0])):
        raise CompressError(
            f"--corpus: expected a text file ({ANY_SUFFIX}) in place of --train, found {corpus[0]}; folders and "
            "data sets are not supported there"
        )
    return corpus[0]


def check_scored(option: str, kind: KindName | None, path: Path) -> None:
    """Raise `CompressError` if plain text is given for a split that is scored."""
    if is_plain_text(kind, path):
        raise CompressError(
            f"{option}: expected pairs of texts with a score, found plain text, which only train may be"
        )


def read_plain_text(path: Path) -> Rows:
    """Return the non-blank lines in order, paired two by two, without scores; the last of an odd number is left out, with a note.

    Raises `CompressError` for fewer than two lines, and like `file_lines`.
    """
    lines = [line for line in file_lines(path) if line]
    pairs = len(lines) // 2
    if not pairs:
        raise CompressError(f"{path}: expected at least two lines of text, found {len(lines)}")
    odd = f"the last of {len(lines):,} lines is left out, because lines are read in pairs"
    return Rows(
        str(path),
        "pair",
        range(1, pairs + 1),
        (lines[: 2 * pairs : 2], lines[1::2]),
        [None] * pairs,
        notes=(odd,) if len(lines) % 2 else (),
    )
