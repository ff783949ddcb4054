"""Metrics of answers that are spans of a text, by the rules of SQuAD's official script (version 2.0). Imports numpy alone."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .correlation import draws
from .headline import FEWEST, Headline, Pairs, check_lengths, check_names

START, END, SCORE, NONE, EXACT, F1 = range(6)  # what a model's outputs for a question are
ANSWER_OUTPUTS = 6
ANSWER_METRICS = {"exact_match": EXACT, "f1_span": F1}
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def normalized_answer(text: str) -> str:
    """In lower case, without ASCII punctuation and English articles, one space between words."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answer_scores(answer: str, gold: Sequence[str]) -> tuple[float, float]:
    """Exact match, 0 or 1, and F1 of words, 0 to 1, each with the gold answer that it is largest with. `answer` is "" where none is
    given. Gold answers of which nothing is left once normalized do not count; without any, no answer is right."""
    known = [text for text in map(normalized_answer, gold) if text] or [""]
    given = normalized_answer(answer)
    return float(given in known), max(_f1(given.split(), text.split()) for text in known)


def _f1(given: list[str], gold: list[str]) -> float:
    if not given or not gold:
        return float(given == gold)
    common = sum((Counter(given) & Counter(gold)).values())
    return 2 * common / (len(given) + len(gold))


def given_answers(outputs: np.ndarray) -> np.ndarray:
    """int64 [question, 2], of outputs [question, 4 or 6]: start and end of each answer; (0, 0) where no answer is likelier."""
    none = outputs[:, NONE] > outputs[:, SCORE]
    return np.where(none[:, None], 0, outputs[:, : END + 1]).astype(np.int64)


@dataclass(frozen=True)
class AnswersHeadline(Headline):
    """Of outputs [question, 6], in which exact match and F1 of each answer stand already: gold answers are texts, which outputs and
    `gold` (1: the question has an answer) do not hold. Resamples draw questions."""

    metrics: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.metrics, list(ANSWER_METRICS))

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        return float(self._points(outputs).mean())

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Two spans that score alike are no difference: gold answers have several wordings."""
        return (self._scores(base) != self._scores(other)).any(axis=1)

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        return outputs[:, EXACT] == 1 if self.metrics == ("exact_match",) else None

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Where models differ on too few questions to tell them apart, two are added that one model answers wrongly."""
        points = np.stack([self._points(outputs) for pair in pairs for outputs in pair])
        if self.changed(pairs, gold) < FEWEST:
            wrong = np.tile([[0.0, 100.0], [100.0, 0.0]], (len(pairs), 1))
            points = np.concatenate([points, wrong], axis=1)
        questions = points.shape[1]
        parts = [points @ weights.T / questions for weights in draws(questions, samples, rng)]
        return np.concatenate(parts, axis=1)

    def _scores(self, outputs: np.ndarray) -> np.ndarray:
        """0 to 1, [question, metric]."""
        return outputs[:, [ANSWER_METRICS[name] for name in self.metrics]]

    def _points(self, outputs: np.ndarray) -> np.ndarray:
        """[question]"""
        return 100 * self._scores(outputs).astype(np.float64).mean(axis=1)
