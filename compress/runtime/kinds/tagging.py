"""Logits of labels for each word -> its most probable label, and the entities that labelled words form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .classification import softmax
from .kind import AnswerKind, Names, Prediction, one_line

OUTSIDE = "O"  # the label of words outside every entity
MARKED = re.compile(r"([BIESLU])-(.+)", re.DOTALL)  # label of a word of an entity: its prefix and type


@dataclass(frozen=True)
class Entity:
    """A part of a text and its label: `text[start:end]`, in characters.

    `score` is the probability of the label; for several words the mean of theirs.
    """

    label: str
    score: float
    start: int
    end: int
    text: str


def unread_label(names: Names) -> int:
    """Return the label of a word without a token: `O` if there is such a label, else the first."""
    return names.index(OUTSIDE) if OUTSIDE in names else 0


def word_outputs(tokens: np.ndarray, starts: np.ndarray, *, mean: bool) -> np.ndarray:
    """Reduce logits of tokens, [token, label], to words, given where each word's tokens begin; return float32 [word, label]. These are the
    logarithm of the mean of a word's token probabilities, or the logits of its most confident token, the first of equals."""
    probabilities = softmax(tokens)
    if mean:
        sizes = np.diff(np.append(starts, len(tokens)))
        sums = np.add.reduceat(probabilities, starts) if len(starts) else probabilities
        return np.log(np.maximum(sums / sizes[:, None], np.finfo(np.float64).tiny)).astype(np.float32)
    confidence = probabilities.max(axis=1)
    words = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(tokens))))
    order = np.lexsort((-confidence, words))  # stable: of equals the first
    return tokens[order[starts]]


def entities(text: str, spans: np.ndarray, words: Sequence[Prediction], *, joined: bool) -> list[Entity]:
    """Return the words with labels other than `O`, from the `spans` [word, 2] of `text` and each word's prediction; `joined`: join the
    words of one entity, with its type as the label."""
    runs = _runs([word.label or OUTSIDE for word in words]) if joined else [
        (str(word.label), [number]) for number, word in enumerate(words) if word.label != OUTSIDE
    ]  # fmt: skip
    return [_entity(text, spans[run], label, [words[number].score for number in run]) for label, run in runs]


def _entity(text: str, spans: np.ndarray, label: str, scores: list[float]) -> Entity:
    start, end = int(spans[0, 0]), int(spans[-1, 1])
    return Entity(label, sum(scores) / len(scores), start, end, text[start:end])


def _runs(labels: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return (type, words) of each entity, as seqeval finds them by default: one begins at B-, at another type, and after `O`. The S-, E-,
    U- and L- of other schemes begin and end one too; a name without a prefix is a type whose words belong together."""
    runs: list[tuple[str, list[int]]] = []
    before: tuple[str, str] | None = None
    for number, label in enumerate(labels):
        if label == OUTSIDE:
            before = None
            continue
        match = MARKED.fullmatch(label)
        prefix, kind = match.groups() if match else ("I", label)
        if before is None or kind != before[1] or prefix in "BSU" or before[0] in "ESLU":
            runs.append((kind, []))
        runs[-1][1].append(number)
        before = prefix, kind
    return runs


def _answers(names: Names, outputs: np.ndarray) -> Iterator[Prediction]:
    """Yield predictions for each word, without the probabilities of the other labels."""
    probabilities = softmax(outputs)
    best = probabilities.argmax(axis=1)
    scores = np.take_along_axis(probabilities, best[:, None], axis=1)[:, 0]
    return (Prediction(names[label], score) for label, score in zip(best.tolist(), scores.tolist(), strict=True))


def _line(answer: Sequence[Entity]) -> str:
    entities = (f"{one_line(each.text)} ({one_line(each.label)} {each.score:.4f})" for each in answer)
    return ", ".join(entities) or "-"


def _entity_fields(answer: Sequence[Entity]) -> list[dict[str, Any]]:
    return [{**asdict(entity), "score": round(entity.score, 6)} for entity in answer]


TAGGING = AnswerKind(
    problem_type=None,
    fits=lambda problem, outputs: True,
    output_names=lambda labels: labels,
    answers=_answers,
    cells=lambda answer: (_entity_fields(answer), None),
    line=_line,
    fields=lambda answer: {"entities": _entity_fields(answer)},
    unit="word",
)
