"""Copies of a split's examples with some words replaced (Jiao et al. 2020, arXiv:1909.10351, Algorithm 1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import CompressError
from ..metrics.ranks import queries_of
from ..tasks import Split, of_words
from .candidates import Candidates, Proposers, find_candidates
from .replaceable import kept_words
from .texts import Texts, words_of
from .words import match_case

if TYPE_CHECKING:
    from tokenizers import Tokenizer


Copied = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Augmented:
    """New examples, ordered by source, and int64 [example] the source of each in the original split."""

    split: Split
    source: np.ndarray


def augment(
    split: Split,
    *,
    tokenizer: Tokenizer,
    proposers: Proposers,
    copies: int,
    probability: float,
    candidates: int,
    seed: int,
    outside: int | None = None,
    fixed: int = 0,
    copied: Copied = lambda labels, sources, copy: labels[sources],
    work: Path | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Augmented:
    """Return up to `copies` new examples for each of `split`, with their source's labels; the originals are not included. If examples are
    passages of queries or endings of questions, up to `copies` new groups for each group, each with all of its rows.

    In every copy, each content word of each text (of both texts of a pair) is replaced with `probability` by one of its `candidates` most
    likely others, uniformly at random; the rest of the text is unchanged. A copy that equals its source or an earlier copy is dropped; a
    group only if all of its rows do. The draws depend on `seed` and the example.

    If words are labelled, a copy's labels move with its words; `outside` is then the label of words outside entities, and other words are
    never replaced, since another name need not be of the same type. If answers are spans, only the questions are rewritten, as answers must
    stay at their positions in unchanged contexts. `fixed`: the number of leading texts of an example that are unchanged. `copied`: as
    `Labels.copied`. `tokenizer`: determines which words are known, if there is no masked language model. `work`: a folder for finished
    parts of exactly this call, from which an interrupted call continues. `on_progress` receives (words done, words in total) of the masked
    language model.

    Raises `CompressError` for arguments out of range, and if no text has a word that can be replaced.
    """
    _check(proposers, copies, probability, candidates)
    texts = words_of(split)
    drawn = _Drawing(seed, copies, probability, texts, kept_words(texts, split, outside, fixed))
    substitutes = find_candidates(
        texts, drawn.needed(), tokenizer, proposers, candidates, work=work, on_progress=on_progress
    )
    copied_groups = (
        (group, _copies(texts, substitutes, group, [drawn(example) for example in group])) for group in _groups(split)
    )
    return _join_copies(split, copied_groups, copied)


def _join_copies(split: Split, groups: Iterable[tuple[list[int], list[tuple[Row, ...]]]], copied: Copied) -> Augmented:
    """Return the copies of each of the `groups`, with their labels. Raises `CompressError` if there are none."""
    columns: list[list[str]] = [[] for _ in split.texts]
    source: list[int] = []
    numbers: list[int] = []  # of the copies of a group, from 0
    moved: list[np.ndarray] = []
    for group, copies in groups:
        for number, copy in enumerate(copies):
            source += group
            numbers += [number] * len(group)
            for column, rewrites in zip(columns, zip(*copy, strict=True), strict=True):
                column.extend(rewritten.text for rewritten in rewrites)
            if split.labels_words:
                moved += [
                    _shift_spans(split.labels[example], row[0].edits) for example, row in zip(group, copy, strict=True)
                ]
    if not source:
        raise CompressError(
            "augmentation made no new example: no word was replaced, because few are drawn or none has a candidate; raise "
            "replace_probability or candidates, or leave the stage out with --set augment.enabled=false"
        )
    rows = np.array(source, np.int64)
    labels = of_words(moved) if split.labels_words else copied(split.labels, rows, np.array(numbers, np.int64))
    return Augmented(replace(split, texts=tuple(columns), labels=labels), rows)


def _groups(split: Split) -> list[list[int]]:
    """Return the examples that are copied together, in order: a query's passages, a question's endings, or a single one."""
    if split.ranks_groups or split.has_choices:
        return [rows.tolist() for rows in queries_of(split.labels)]
    return [[example] for example in range(len(split))]


def _shift_spans(label: np.ndarray, edits: Sequence[Edit]) -> np.ndarray:
    """Return int32 [word, 3] of a text after `edits`, in order, each of which replaced a span by so many characters."""
    starts = np.array([edit[0] for edit in edits], np.int64)
    ends = np.array([edit[1] for edit in edits], np.int64)
    grown = np.cumsum([0, *(length - (end - start) for start, end, length in edits)])
    new = label.copy()
    new[:, 1] += grown[np.searchsorted(ends, label[:, 1], side="right")]
    new[:, 2] += grown[np.searchsorted(starts, label[:, 2], side="left")]
    return new


def _check(proposers: Proposers, copies: int, probability: float, candidates: int) -> None:
    if copies < 1 or candidates < 1:
        raise CompressError(f"copies and candidates are at least 1, found {copies} and {candidates}")
    if not 0 < probability <= 1:
        raise CompressError(f"probability of replacing a word is above 0 and at most 1, found {probability}")
    if proposers.masked_lm is None and proposers.others is None:
        raise CompressError("augmentation needs a source of candidates: a masked language model, neighbours or both")


@dataclass(frozen=True)
class _Drawing:
    """The draws of every example, computed on demand, because stored ones would be larger than the texts."""

    seed: int
    copies: int
    probability: float
    texts: Texts
    kept: list[np.ndarray] | None = None

    def __call__(self, example: int) -> Draws:
        words = self.texts.words_of_example(example)
        drawn = draw(self.seed, example, copies=self.copies, words=words, probability=self.probability)
        if self.kept is not None:
            drawn.replaced[:, self.kept[example]] = False
        return drawn

    def needed(self) -> np.ndarray:
        """Return bool [word]: whether any copy replaces it."""
        needed = np.zeros(self.texts.words, bool)
        for example in range(len(self.texts.of_example)):
            needed[self.texts.numbers(example)[self(example).replaced.any(0)]] = True
        return needed


@dataclass(frozen=True)
class Draws:
    """bool [copy, word]: whether it is replaced; float64 [copy, word] in [0, 1): the fraction that picks a candidate."""

    replaced: np.ndarray
    share: np.ndarray


def draw(seed: int, example: int, *, copies: int, words: int, probability: float) -> Draws:
    """Return the draws of one example. They depend only on the arguments, not on other examples or candidates."""
    rng = np.random.default_rng([seed % 2**64, example])
    return Draws(rng.random((copies, words)) < probability, rng.random((copies, words)))


Edit = tuple[int, int, int]  # start and end of the replaced span, and the length of its replacement


class Rewritten(NamedTuple):
    """A text with some words replaced, and where."""

    text: str
    edits: tuple[Edit, ...]


Row = tuple[Rewritten, ...]  # a text per column


def _copies(
    texts: Texts, substitutes: Candidates, group: Sequence[int], draws: Sequence[Draws]
) -> list[tuple[Row, ...]]:
    """Return the distinct new copies of a group, in the order drawn, with a row for each of its examples; `draws`: of each of them."""
    seen = {tuple(tuple(texts.texts[number] for number in texts.of_example[example]) for example in group)}
    new: list[tuple[Row, ...]] = []
    for number in range(len(draws[0].replaced)):
        rows = tuple(
            _replace_words(texts, substitutes, example, each.replaced[number], each.share[number])
            for example, each in zip(group, draws, strict=True)
        )
        copy = tuple(tuple(rewritten.text for rewritten in row) for row in rows)
        if copy not in seen:
            seen.add(copy)
            new.append(rows)
    return new


def _replace_words(texts: Texts, substitutes: Candidates, example: int, replaced: np.ndarray, share: np.ndarray) -> Row:
    """Return an example's texts, each with its `replaced` words replaced."""
    rewrites, start = [], 0
    for number in texts.of_example[example]:
        end = start + len(texts.spans[number])
        rewrites.append(_rewrite(texts, substitutes, number, replaced[start:end], share[start:end]))
        start = end
    return tuple(rewrites)


def _rewrite(texts: Texts, substitutes: Candidates, number: int, replaced: np.ndarray, share: np.ndarray) -> Rewritten:
    """Return a text with its `replaced` words replaced, and nothing else changed."""
    text, spans, first = texts.texts[number], texts.spans[number], int(texts.first[number])
    pieces, edits, done = [], [], 0
    for index in np.flatnonzero(replaced).tolist():
        start, end = spans[index]
        word = substitutes.pick(first + index, float(share[index]))
        if word is not None:
            pieces += [text[done:start], match_case(word, text[start:end])]
            edits.append((start, end, len(pieces[-1])))
            done = end
    return Rewritten("".join([*pieces, text[done:]]), tuple(edits))


NAME = "augmented.jsonl"


def write_augmented(augmented: Augmented, out: Path) -> None:
    """Write `augmented.jsonl` to the folder `out`: per line `texts`, `label` (or `words`, `spans` or `ending`, for such labels) and
    `source` of an example."""
    out.mkdir(parents=True, exist_ok=True)
    rows = zip(*augmented.split.texts, strict=True)
    labels, sources = [label.tolist() for label in augmented.split.labels], augmented.source.tolist()
    field = _label_field(augmented.split)
    with (out / NAME).open("w", encoding="utf-8") as file:
        for texts, label, source in zip(rows, labels, sources, strict=True):
            line = {"texts": texts, field: label, "source": source}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _label_field(split: Split) -> str:
    """Return the name under which the labels of these examples are written."""
    if split.labels_words:
        return "words"
    if split.labels_spans:
        return "spans"
    return "ending" if split.has_choices else "label"


def read_augmented(folder: Path) -> Split:
    """Return the examples that `write_augmented` wrote to `folder`. Raises `CompressError` naming the first invalid line."""
    path = folder / NAME
    columns: list[list[str]] = []
    labels: list[Any] = []
    field = "label"
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                example = json.loads(line)
                columns = columns or [[] for _ in example["texts"]]
                for column, text in zip(columns, example["texts"], strict=True):
                    column.append(text)
                field = next(name for name in ("words", "spans", "ending", "label") if name in example)
                labels.append(example[field])
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise CompressError(f"{path}:{len(labels) + 1}: not an augmented example: {error!r}") from None
    if not labels:
        raise CompressError(f"{path}: empty; expected an example on every line")
    if field == "ending":
        return Split(tuple(columns), np.array(labels, np.int64).reshape(-1, 2))
    if field != "label":
        width = 3 if field == "words" else 2
        return Split(tuple(columns), of_words([np.array(label, np.int32).reshape(-1, width) for label in labels]))
    return Split(tuple(columns), np.array(labels, _type_of(labels[0])))


def _type_of(label: Any) -> type:
    """Return the label type, as in `Split`: of a class, of relevance and query, of a score or of flags."""
    if isinstance(label, int):
        return np.int64
    return np.float64 if isinstance(label, list) and isinstance(label[0], float) else np.float32
