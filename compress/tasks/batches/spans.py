"""Questions and their contexts as windows of tokens: positions of answers in them, and token outputs back to answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import tokenizers

from ...metrics.answers import ANSWER_OUTPUTS, END, EXACT, NONE, answer_scores, apply_threshold, question_gold
from ...runtime.passages import Best, Cut, Passages
from ..data import Split, of_words
from .encoded import ENCODE_AT_ONCE, Encoded, ragged_rows


@dataclass(frozen=True)
class EncodedSpans(Encoded):
    """Rows are windows of a question and part of its context; `labels` are the gold of all questions (`Labels.gold`). `cut`: locations of
    the windows; `places` int32 [window, 2]: training targets, the positions of an answer's first and last token, or [CLS] twice.
    `impossible`: a model may give no answer (`Split.unanswerable`)."""

    cut: Cut
    questions: list[str]
    contexts: list[str]
    answers: np.ndarray  # `Split.labels`
    places: np.ndarray
    impossible: bool

    def collected(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Return float32 [question, 6] from windows and their outputs [window, length, 2], in any order, each window once: start and end of
        the best span in characters of the context, its score, and that of no answer; exact match and F1 of the span."""
        best = Best(self.cut)
        for windows, batch_outputs in parts:
            best.add(windows, batch_outputs)
        outputs = np.zeros((len(self.contexts), ANSWER_OUTPUTS), np.float32)
        outputs[:, : NONE + 1] = best.best_spans(impossible=self.impossible)
        for question, (start, end) in enumerate(outputs[:, : END + 1].astype(int).tolist()):
            context = self.contexts[question]
            gold = [context[first:stop] for first, stop in self.answers[question].tolist()]
            outputs[question, EXACT:] = answer_scores(context[start:end], gold)
        return outputs

    def decided(self, outputs: np.ndarray, threshold: float | np.ndarray) -> np.ndarray:
        """Return float32 [question, 6], with (0, 0) and the scores of no answer where the score of no answer exceeds that of the span by
        more than `threshold`; `threshold` is subtracted from that margin."""
        return apply_threshold(outputs, self.labels, float(threshold))

    def take(self, indices: np.ndarray) -> EncodedSpans:
        """Return only these windows, in this order, with their questions, in order of their first windows. A question is answered from its
        taken windows alone."""
        owners = self.cut.question[indices]
        kept, first = np.unique(owners, return_index=True)
        kept = kept[np.argsort(first)]
        number = np.zeros(self.cut.questions, np.int64)
        number[kept] = np.arange(len(kept))
        cut = replace(
            self.cut,
            questions=len(kept),
            question=number[owners],
            bounds=self.cut.bounds[indices],
            spans=[self.cut.spans[index] for index in indices],
        )
        questions, contexts = ([texts[question] for question in kept] for texts in (self.questions, self.contexts))
        labels, answers, places = self.labels[kept], self.answers[kept], self.places[indices]
        return EncodedSpans(*self._rows(indices), labels, cut, questions, contexts, answers, places, self.impossible)

    def concat(self, other: Encoded) -> EncodedSpans:
        if not isinstance(other, EncodedSpans):
            raise TypeError("questions are followed by questions")
        return EncodedSpans(
            *self._joined(replace(other, labels=other.labels + self.labels.max(initial=-1) // 2 * 2 + 2)),
            self.cut.concat(other.cut),
            self.questions + other.questions,
            self.contexts + other.contexts,
            of_words([*self.answers, *other.answers]),
            np.concatenate([self.places, other.places]),
            self.impossible or other.impossible,
        )

    def question(self, window: int) -> str:
        """Return the whole question."""
        return self.questions[int(self.cut.question[window])]

    def context(self, window: int) -> str:
        """Return the whole context."""
        return self.contexts[int(self.cut.question[window])]

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 [window + 1]: where each window's tokens start among those of all windows in sequence, and where the last end."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    def compares(self, windows: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return whether the token at each of `positions` in `windows` is of the context or [CLS], over which answers are distributed;
        bool."""
        first, end, cls = np.moveaxis(self.cut.bounds[windows, :3], -1, 0)
        return ((positions >= first) & (positions < end)) | (positions == cls)

    def targets(self, indices: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Return `labels` int64 [window, 2]: positions of an answer's first and last token; `compared` int64 [window, length]: 1 at tokens
        of the context and at [CLS], which means no answer in the window."""
        compared = self.compares(np.asarray(indices)[:, None], np.arange(length))
        return {"labels": self.places[indices].astype(np.int64), "compared": compared.astype(np.int64)}


def encode_spans(tokenizer: tokenizers.Tokenizer, split: Split, max_length: int) -> EncodedSpans:
    """Return every question and its context in windows of at most `max_length` tokens. The given tokenizer is not changed."""
    passages = Passages(tokenizer, max_length)
    questions, contexts = split.texts
    ids: list[np.ndarray] = []
    types: list[np.ndarray] = []
    cut = passages([], []).without_encodings()
    for start in range(0, len(split), ENCODE_AT_ONCE):
        part = slice(start, start + ENCODE_AT_ONCE)
        windows = passages(questions[part], contexts[part])
        lengths = [len(encoding) for encoding in windows.encodings]
        ids += ragged_rows([encoding.ids for encoding in windows.encodings], lengths, np.int32)
        types += ragged_rows([encoding.type_ids for encoding in windows.encodings], lengths, np.int8)
        cut = cut.concat(windows.without_encodings())
    gold = question_gold(contexts, split.labels)
    places = _answer_tokens(cut, split.labels)
    return EncodedSpans(
        ids, types, gold, cut, list(questions), list(contexts), split.labels, places, split.unanswerable
    )


def _answer_tokens(cut: Cut, answers: np.ndarray) -> np.ndarray:
    """Return int32 [window, 2]: the first and last token of the question's first gold answer, if the window contains all of it, else [CLS]
    twice."""
    windows = len(cut.question)
    begins = np.append(True, np.diff(cut.question) != 0)[:windows]
    ends = np.append(begins[1:], True)[:windows]
    places = np.zeros((windows, END + 1), np.int32)
    for window, question in enumerate(cut.question.tolist()):
        first, _, cls = cut.readable(window)
        tokens = None
        if len(answers[question]):
            start, end = answers[question][0].tolist()
            tokens = _tokens(cut.offsets(window), start, end, begins[window], ends[window])
        places[window] = cls if tokens is None else np.add(tokens, first)
    return places


def _tokens(offsets: np.ndarray, start: int, end: int, begins: bool, ends: bool) -> tuple[int, int] | None:
    """Return the first and last token with characters from `start` to `end`; None if there are none, or others may be outside the window.
    `begins`, `ends`: the context begins or ends in this window."""
    inside = np.flatnonzero((offsets[:, 1] > start) & (offsets[:, 0] < end) & (offsets[:, 1] > offsets[:, 0]))
    if not len(inside):
        return None
    cut_off = (not begins and offsets[0, 0] > start) or (not ends and offsets[-1, 1] < end)
    return None if cut_off else (int(inside[0]), int(inside[-1]))
