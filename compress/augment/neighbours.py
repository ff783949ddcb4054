"""Candidates for a word independent of its sentence: the words with the nearest vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from ..errors import CompressError
from ..tokenization.special import UNKNOWN, token_named
from ..tokenization.word_starts import word_mark
from .words import NONE, SPARE, case_folded_ids, exclude_own_word, fold_numbers, is_content_word, whole_words

AT_ONCE = 256  # words; bounds the table of similarities, [words, vocabulary]
LEAST = 0.35  # cosine with the mean of several pieces; below, the nearest word shares a syllable, not a meaning


class WordProposer(Protocol):
    """Proposes candidates for words without context."""

    vocabulary: tuple[str, ...]

    def propose(self, words: Sequence[str], candidates: int) -> np.ndarray:
        """Return int32 [word, candidate]: indices into `vocabulary`, best first, padded with -1."""
        ...


class NeighbourProposer:
    """Proposes the nearest whole words in a model's word embedding table, by cosine with the mean of a word's pieces.

    `table` is [vocabulary, width], for instance `model.get_input_embeddings().weight` as an array. Its mean is subtracted first, because
    all rows share a large common part. A word of several pieces only gets candidates that are really near, without its own pieces, and
    often none.
    """

    def __init__(self, table: np.ndarray, tokenizer: Tokenizer) -> None:
        self.vocabulary, ids = whole_words(tokenizer)
        if not len(ids):
            raise CompressError("the tokenizer's vocabulary holds no whole words to replace others by")
        if ids.max() >= len(table):
            raise CompressError(
                f"the table has {len(table)} rows and the tokenizer {tokenizer.get_vocab_size()} tokens"
            )
        self._tokenizer = tokenizer
        self._before = " " if word_mark(tokenizer) else ""
        self._table = table.astype(np.float32) - table[ids].mean(0, dtype=np.float32)
        self._words = normalize_rows(self._table[ids])
        self._column = {int(id_): column for column, id_ in enumerate(ids)}

    def propose(self, words: Sequence[str], candidates: int) -> np.ndarray:
        encodings = self._tokenizer.encode_batch([self._before + word for word in words], add_special_tokens=False)
        unknown = token_named(self._tokenizer, UNKNOWN)
        vectors = np.zeros((len(words), self._table.shape[1]), np.float32)
        least = np.full(len(words), np.inf)
        pieces: list[list[int]] = []
        for row, encoding in enumerate(encodings):
            pieces.append([self._column[id_] for id_ in encoding.ids if id_ in self._column])
            if encoding.ids and unknown not in encoding.ids:
                vectors[row] = self._table[encoding.ids].mean(0)
                least[row] = LEAST if len(encoding.ids) > 1 else -np.inf
        return nearest(self._words, vectors, self.vocabulary, words, candidates, least=least, barred=pieces)


def normalize_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows of length 1; zeros stay zeros."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def nearest(
    table: np.ndarray,
    vectors: np.ndarray,
    vocabulary: tuple[str, ...],
    words: Sequence[str],
    candidates: int,
    *,
    least: np.ndarray,
    barred: Sequence[Sequence[int]],
) -> np.ndarray:
    """Return the rows of `table` (normalised, [vocabulary, width]) nearest to each of `vectors` [word, width] by cosine.

    int32 [word, candidate], padded with -1: never the word itself, none below its `least` cosine [word], none of the rows `barred` for it.
    """
    fold, own = case_folded_ids(vocabulary), case_folded_ids(words, fold_numbers(vocabulary))
    neighbours = [np.zeros((0, candidates), np.int32)]
    for start in range(0, len(words), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        cosines = normalize_rows(vectors[part]) @ table.T
        for row, columns in enumerate(barred[part]):
            cosines[row, columns] = -np.inf
        ranked = _top_columns(cosines, candidates + SPARE)
        near = np.take_along_axis(cosines, ranked, 1)
        ranked = np.where((near >= least[part, None]) & (near > -np.inf), ranked, NONE)
        neighbours.append(exclude_own_word(ranked, fold, own[part], candidates))
    return np.concatenate(neighbours)


def _top_columns(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the columns of the `count` highest scores of every row, best first: int32 [row, count]."""
    count = min(count, scores.shape[1])
    part = np.argpartition(-scores, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(scores, part, 1), axis=1, kind="stable")
    return np.take_along_axis(part, order, 1).astype(np.int32)


MOST_WORDS = 100_000  # first in the file, which has frequent words first; as in the official code


class GloveProposer:
    """Proposes the nearest content words in a GloVe file (https://nlp.stanford.edu/projects/glove/), by cosine.

    A word that is not in the file has no candidates. Raises `CompressError` with the number of an invalid line.
    """

    def __init__(self, path: Path) -> None:
        words, vectors = read_glove(path)
        kept = [row for row, word in enumerate(words) if is_content_word(word)]
        if not kept:
            raise CompressError(f"{path}: no words in the first {MOST_WORDS:,} lines")
        self.vocabulary = tuple(words[row] for row in kept)
        self._table = normalize_rows(vectors[kept])
        self._row = {word: row for row, word in reversed(list(enumerate(self.vocabulary)))}

    def propose(self, words: Sequence[str], candidates: int) -> np.ndarray:
        rows = np.array([self._row.get(word, self._row.get(word.lower(), NONE)) for word in words], np.int64)
        least = np.where(rows == NONE, np.inf, -np.inf)
        return nearest(
            self._table, self._table[rows], self.vocabulary, words, candidates, least=least, barred=[[] for _ in words]
        )


def read_glove(path: Path, most: int = MOST_WORDS) -> tuple[list[str], np.ndarray]:
    """Return the first `most` words of the file and their vectors, float32 [word, width].

    Raises `CompressError` with the number of an invalid line.
    """
    words: list[str] = []
    rows: list[np.ndarray] = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if number > most:
                    break
                word, values = _word_and_vector(path, number, line.rstrip("\n"), len(rows[0]) if rows else None)
                words.append(word)
                rows.append(values)
    except (OSError, UnicodeDecodeError) as error:
        raise CompressError(f"{path}: cannot be read as a file of word vectors: {error}") from None
    if not words:
        raise CompressError(f"{path}: empty; expected a word and its vector on every line")
    return words, np.stack(rows)


def _word_and_vector(path: Path, line: int, text: str, width: int | None) -> tuple[str, np.ndarray]:
    """Return word and vector. The first line determines how many numbers end a line; the word before them may have spaces, such as `. . .`
    in glove.840B."""
    word, *fields = text.split(" ")
    extra = 0 if width is None else max(0, len(fields) - width)
    if not all(map(_is_number, fields[:extra])):
        word, fields = " ".join([word, *fields[:extra]]), fields[extra:]
    return word, _parse_numbers(path, line, fields, width)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _parse_numbers(path: Path, line: int, fields: list[str], width: int | None) -> np.ndarray:
    try:
        values = np.array(fields, dtype=np.float32)
    except ValueError:
        raise CompressError(f"{path}:{line}: expected a word and numbers separated by spaces") from None
    if not len(values):
        raise CompressError(f"{path}:{line}: expected a word and numbers separated by spaces")
    if width not in (None, len(values)) or not np.isfinite(values).all():
        expected = f"{width} finite numbers" if width else "finite numbers"
        raise CompressError(f"{path}:{line}: expected a word and {expected}, found {len(values)}")
    return values
