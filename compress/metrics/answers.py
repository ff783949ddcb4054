"""Metrics of answer spans, by the rules of SQuAD's official script (version 2.0). Imports numpy alone."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .correlation import draws
from .headline import FEWEST, Headline, Pairs, check_lengths, check_names

START, END, SCORE, NONE, EXACT, F1 = range(6)  # columns of a model's outputs for a question
ANSWER_OUTPUTS = 6
LEAST = -1e8  # a lower value is not a score, but marks that none is possible
_APART, _SAME = 1e-4, 1e-6  # tolerances for scores of a span, and for sums of points
ANSWER_METRICS = {"exact_match": EXACT, "f1_span": F1}
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def normalized_answer(text: str) -> str:
    """Return the text in lower case, without ASCII punctuation and English articles, with single spaces between words."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answer_scores(answer: str, gold: Sequence[str]) -> tuple[float, float]:
    """Return exact match, 0 or 1, and F1 of words, 0 to 1, each with the gold answer that maximizes it. `answer` is "" if none is given.
    Gold answers that are empty after normalization do not count; if none remain, no answer is right."""
    known = [text for text in map(normalized_answer, gold) if text] or [""]
    prediction = normalized_answer(answer)
    return float(prediction in known), max(_f1(prediction.split(), text.split()) for text in known)


def _f1(prediction: list[str], gold: list[str]) -> float:
    if not prediction or not gold:
        return float(prediction == gold)
    common = sum((Counter(prediction) & Counter(gold)).values())
    return 2 * common / (len(prediction) + len(gold))


def question_gold(contexts: Sequence[str], spans: Iterable[np.ndarray]) -> np.ndarray:
    """Return int64 [question], from contexts and answer spans [answer, 2] in characters: twice the number of the context, from 1, plus 1 if
    the question has an answer that counts (`answer_scores`). 0 and 1 mean an unknown context."""
    numbers: dict[str, int] = {}
    gold = np.zeros(len(contexts), np.int64)
    for question, (context, places) in enumerate(zip(contexts, spans, strict=True)):
        texts = (context[start:end] for start, end in np.asarray(places).reshape(-1, 2).tolist())
        gold[question] = 2 * numbers.setdefault(context, len(numbers) + 1) + any(map(normalized_answer, texts))
    return gold


def has_answer(gold: np.ndarray) -> np.ndarray:
    """Return bool [question] from `question_gold`."""
    return np.asarray(gold) % 2 == 1


def context_of(gold: np.ndarray) -> np.ndarray:
    """Return context numbers, int64 [question], from 0, for `question_gold`, alone or repeated beside outputs; a question of unknown
    context gets its own."""
    numbers = np.asarray(gold if np.ndim(gold) == 1 else gold[:, 0]).astype(np.int64) // 2
    own = numbers.max(initial=0) + 1 + np.arange(len(numbers))
    return np.unique(np.where(numbers > 0, numbers, own), return_inverse=True)[1]


def apply_threshold(outputs: np.ndarray, gold: np.ndarray, threshold: float) -> np.ndarray:
    """Return outputs [question, 6], in which every answer is the best span, with no answer where its score, `NONE`, exceeds that of the
    span by more than `threshold`; `threshold` is subtracted from it. Questions that must be answered are unchanged."""
    decisions = outputs.copy()
    decisions[:, NONE] -= np.where(decisions[:, NONE] > LEAST, threshold, 0)
    none = decisions[:, NONE] > decisions[:, SCORE]
    decisions[none, : END + 1] = 0
    decisions[none, EXACT:] = ~has_answer(gold)[none, None]
    return decisions


def best_no_answer_threshold(outputs: np.ndarray, gold: np.ndarray, headline: AnswersHeadline) -> float:
    """Return the `threshold` of `apply_threshold` with the best score; 0 if no other is better, else among equals the nearest to 0.

    It lies midway between two margins (no answer minus best span) that differ by more than runtimes do, or beyond all of them.
    """
    comparable = (outputs[:, NONE] > LEAST) & (outputs[:, SCORE] > LEAST)
    if not comparable.any():
        return 0.0
    margins = outputs[comparable, NONE].astype(np.float64) - outputs[comparable, SCORE]
    gained = headline.points(outputs)[comparable] - 100.0 * ~has_answer(gold)[comparable]  # by answering instead of not
    order = np.argsort(margins, kind="stable")
    margins, totals = margins[order], np.append(0, np.cumsum(gained[order]))
    gaps = np.flatnonzero(np.diff(margins) > _APART) + 1
    places = np.concatenate([[0], gaps, [len(margins)]])
    edges = np.concatenate([[margins[0] - 2], margins, [margins[-1] + 2]])
    thresholds = (edges[places] + edges[places + 1]) / 2
    today = totals[np.searchsorted(margins, 0, side="right")]
    if totals[places].max() <= today + _SAME:
        return 0.0
    best = thresholds[totals[places] >= totals[places].max() - _SAME]
    return float(best[np.abs(best).argmin()])


def decided_spans(outputs: np.ndarray) -> np.ndarray:
    """Return int64 [question, 2] from outputs [question, 4 or 6]: start and end of each answer; (0, 0) where no answer is likelier."""
    none = outputs[:, NONE] > outputs[:, SCORE]
    return np.where(none[:, None], 0, outputs[:, : END + 1]).astype(np.int64)


@dataclass(frozen=True)
class AnswersHeadline(Headline):
    """Headline for outputs [question, 6] that already include exact match and F1 of each answer, because neither outputs nor `gold`
    (`question_gold`) contain the gold texts. Resamples draw contexts with all their questions, whose errors are correlated."""

    metrics: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.metrics, list(ANSWER_METRICS))

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        return float(self.points(outputs).mean())

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return whether scores differ. Different spans with equal scores are no difference, as gold answers have several wordings."""
        return (self._scores(base) != self._scores(other)).any(axis=1)

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        """Return which answers are right. Also None if contexts have several questions, which McNemar's test would take as independent."""
        one_each = len(np.unique(context_of(gold))) == len(gold)
        return outputs[:, EXACT] == 1 if one_each and self.metrics == ("exact_match",) else None

    def count_changed(self, pairs: Pairs, gold: np.ndarray) -> int:
        questions = np.any([self.differ(base, other) for base, other in pairs], axis=0)
        return len(np.unique(context_of(gold)[questions]))

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return points on resampled contexts. If models differ on too few contexts to be told apart, two are added, in each of which one
        model answers one question wrongly."""
        context = context_of(gold)
        counts = np.bincount(context).astype(np.float64)
        sums = np.stack([np.bincount(context, self.points(outputs)) for pair in pairs for outputs in pair])
        if self.count_changed(pairs, gold) < FEWEST:
            mean = max(round(counts.mean()), 1)
            wrong = 100.0 * np.tile([[mean - 1, mean], [mean, mean - 1]], (len(pairs), 1))
            sums, counts = np.concatenate([sums, wrong], axis=1), np.append(counts, [mean, mean])
        parts = [sums @ weights.T / (weights @ counts) for weights in draws(len(counts), samples, rng)]
        return np.concatenate(parts, axis=1)

    def points(self, outputs: np.ndarray) -> np.ndarray:
        """Return 0 to 100, [question]."""
        return 100 * self._scores(outputs).astype(np.float64).mean(axis=1)

    def _scores(self, outputs: np.ndarray) -> np.ndarray:
        """Return 0 to 1, [question, metric]."""
        return outputs[:, [ANSWER_METRICS[name] for name in self.metrics]]
