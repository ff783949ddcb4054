"""Word vectors of a text file in GloVe's format: a word and its numbers on a line, separated by spaces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import CompressError
from .neighbours import nearest, normalized
from .words import NONE, is_content_word

MOST_WORDS = 100_000  # from the top of the file, where the frequent words are; as in the official code


class GloveProposer:
    """Nearest content words of a GloVe file (https://nlp.stanford.edu/projects/glove/), by cosine.

    A word that the file lacks has no candidates. Raises `CompressError` with the line of what is wrong in the file.
    """

    def __init__(self, path: Path) -> None:
        words, vectors = read_glove(path)
        kept = [row for row, word in enumerate(words) if is_content_word(word)]
        if not kept:
            raise CompressError(f"{path}: no words in the first {MOST_WORDS:,} lines")
        self.vocabulary = tuple(words[row] for row in kept)
        self._table = normalized(vectors[kept])
        self._row = {word: row for row, word in reversed(list(enumerate(self.vocabulary)))}

    def propose(self, words: Sequence[str], candidates: int) -> np.ndarray:
        rows = np.array([self._row.get(word, self._row.get(word.lower(), NONE)) for word in words], np.int64)
        least = np.where(rows == NONE, np.inf, -np.inf)
        return nearest(
            self._table, self._table[rows], self.vocabulary, words, candidates, least=least, barred=[[] for _ in words]
        )


def read_glove(path: Path, most: int = MOST_WORDS) -> tuple[list[str], np.ndarray]:
    """The first `most` words of the file and their vectors, float32 [word, width].

    Raises `CompressError` with the line of what is wrong in them.
    """
    words: list[str] = []
    rows: list[np.ndarray] = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if number > most:
                    break
                word, _, rest = line.rstrip("\n").partition(" ")
                words.append(word)
                rows.append(_numbers(path, number, rest, len(rows[0]) if rows else None))
    except (OSError, UnicodeDecodeError) as error:
        raise CompressError(f"{path}: cannot be read as a file of word vectors: {error}") from None
    if not words:
        raise CompressError(f"{path}: empty; expected a word and its vector on every line")
    return words, np.stack(rows)


def _numbers(path: Path, line: int, text: str, width: int | None) -> np.ndarray:
    try:
        values = np.array(text.split(" "), dtype=np.float32)
    except ValueError:
        raise CompressError(f"{path}:{line}: expected a word and numbers separated by spaces") from None
    if width not in (None, len(values)) or not np.isfinite(values).all():
        expected = f"{width} finite numbers" if width else "finite numbers"
        raise CompressError(f"{path}:{line}: expected a word and {expected}, found {len(values)}")
    return values
