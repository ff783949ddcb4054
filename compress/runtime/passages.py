"""Questions and their contexts as windows of tokens, and the likeliest answer spans by a model's logits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import tokenizers

NO_SCORE = -1e9  # the score of an impossible answer: below those of models, and finite
QUESTION_TOKENS = 64  # a longer question is cut, as in SQuAD's scripts
ANSWER_TOKENS = 30  # maximum length of an answer, as in SQuAD's scripts
MOST_ANSWERS = 20  # kept for a question
THRESHOLD = "null_score_diff_threshold"  # of config.json: the margin by which no answer must beat the best span; as in SQuAD's scripts
MOST_THRESHOLD = 1e6  # either way; far beyond any score
_OVERLAP = 4  # a window shares a quarter of its context tokens with the one before it


@dataclass(frozen=True)
class Cut:
    """The windows of `questions` questions about their contexts, question after question. `question` int64 [window]: the question of
    each."""

    questions: int
    question: np.ndarray
    answer_tokens: int
    # int64 [window, 5]: `readable`, then the first position where an answer may begin, and the end of those.
    bounds: np.ndarray
    spans: list[np.ndarray]  # for each window int32 [token of the context, 2]: characters, without spaces at their ends
    encodings: list[tokenizers.Encoding] = field(repr=False)

    def readable(self, window: int) -> tuple[int, int, int]:
        """Return positions: of the first token of the context, after its last one (0, 0 if it has none), and of [CLS], last in XLNet."""
        first, end, cls = self.bounds[window, :3].tolist()
        return first, end, cls

    def offsets(self, window: int) -> np.ndarray:
        """Return int32 [end - first, 2]: the characters of each readable token in its context, the end exclusive, without a space that a
        tokenizer counts with a word. Empty, start = end, for a token without visible characters."""
        return self.spans[window]

    def without_encodings(self) -> Cut:
        """Return what `Best` needs, in a fiftieth of the memory."""
        return replace(self, encodings=[])

    def concat(self, other: Cut) -> Cut:
        """Return the windows of both; the questions of `other` come after these."""
        return Cut(
            self.questions + other.questions,
            np.concatenate([self.question, other.question + self.questions]),
            self.answer_tokens,
            np.concatenate([self.bounds, other.bounds]),
            self.spans + other.spans,
            self.encodings + other.encodings,
        )


class Passages:
    """Cuts (question, context) pairs into windows of at most `max_length` tokens, special ones included, for a copy of `tokenizer`; may be
    used from several threads.

    Every window has the question, cut to `QUESTION_TOKENS` or to half of the available tokens, whichever is less, and a part of the
    context; a quarter of a window's context overlaps with the one before. An answer may begin only at tokens that have most context in this
    window, on the side where they have less (SQuAD's `token_is_max_context`), so in one window each.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, max_length: int, *, answer_tokens: int = ANSWER_TOKENS) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.max_length, self.answer_tokens = max_length, answer_tokens
        self._room = max_length - self._tokenizer.num_special_tokens_to_add(True)
        self._pairs = tokenizers.Tokenizer.from_str(self._tokenizer.to_str())
        self._lock = threading.Lock()  # the truncation of `_pairs` is set anew for each length of questions
        pair = self._tokenizer.encode("a", "a")
        self._cls_last = pair.sequence_ids[:1] == [0]
        texts = zip(pair.sequence_ids, pair.type_ids, strict=True)
        self._segment = next((segment for text, segment in texts if text == 1), 1)

    def __call__(self, questions: Sequence[str], contexts: Sequence[str]) -> Cut:
        """Return the windows of texts [question] and [question]. Either may be empty."""
        windows = self._windows(list(questions), contexts)
        encodings = [encoding for of_one, _ in windows for encoding in of_one]
        bounds = [bound for of_one, overlap in windows for bound in self._bounds(of_one, overlap)]
        counts = [len(of_one) for of_one, _ in windows]
        question = np.repeat(np.arange(len(counts)), counts)
        spans = [
            _spans(contexts[whose], encoding.offsets[first:end])
            for whose, encoding, (first, end, *_) in zip(question.tolist(), encodings, bounds, strict=True)
        ]
        table = np.array(bounds, np.int64).reshape(-1, 5)
        return Cut(len(counts), question, self.answer_tokens, table, spans, encodings)

    def _windows(self, questions: list[str], contexts: Sequence[str]) -> list[tuple[list[tokenizers.Encoding], int]]:
        """Return for each question its windows, and the number of tokens that two of them share. Questions of one length leave the same
        space for the context."""
        lengths = np.array([self._shorten(questions, number) for number in range(len(questions))], np.int64)
        windows: list[tuple[list[tokenizers.Encoding], int]] = [([], 0)] * len(questions)
        for length in np.unique(lengths):
            room = self._room - int(length)
            overlap = min(max(room // _OVERLAP, 1), room - 1)
            numbers = np.flatnonzero(lengths == length).tolist()
            with self._lock:
                self._pairs.enable_truncation(self.max_length, stride=overlap, strategy="only_second")
                encodings = self._pairs.encode_batch([(questions[i], contexts[i]) for i in numbers])
            for number, encoding in zip(numbers, encodings, strict=True):
                windows[number] = [encoding, *map(self._with_segment, encoding.overflowing)], overlap
        return windows

    def _with_segment(self, window: tokenizers.Encoding) -> tokenizers.Encoding:
        """Return the window with the segment that the tokenizer gives a second text: tokenizers 0.23 always gives overflowing parts 1."""
        return window if self._segment == 1 else cast(tokenizers.Encoding, _Typed(window, self._segment))

    def _shorten(self, questions: list[str], number: int) -> int:
        """Cut a question in place if it has too many tokens; return its number of tokens. A part of a word may have more tokens than it had
        in the word, hence the loop."""
        most = min(QUESTION_TOKENS, self._room // 2)
        while len(encoding := self._tokenizer.encode(questions[number], add_special_tokens=False)) > most:
            end = encoding.offsets[most - 1][1] if most else 0
            questions[number] = questions[number][: min(end, len(questions[number]) - 1)]
        return len(encoding)

    def _bounds(self, windows: Sequence[tokenizers.Encoding], overlap: int) -> list[tuple[int, int, int, int, int]]:
        """Return `Cut.bounds` of the windows of one question. Of the tokens that two windows share the first half belongs to the earlier
        one, and one in the middle too."""
        bounds = []
        for number, encoding in enumerate(windows):
            inside = [index for index, text in enumerate(encoding.sequence_ids) if text == 1]
            first, end = (inside[0], inside[-1] + 1) if inside else (0, 0)
            begin = first + (overlap + 1) // 2 if number else first
            stop = end - overlap + (overlap + 1) // 2 if number < len(windows) - 1 else end
            bounds.append((first, end, len(encoding) - 1 if self._cls_last else 0, begin, stop))
        return bounds


@dataclass(frozen=True)
class _Typed:
    """An Encoding with another segment for its second text."""

    encoding: tokenizers.Encoding
    segment: int

    @property
    def type_ids(self) -> list[int]:
        types = zip(self.encoding.type_ids, self.encoding.sequence_ids, strict=True)
        return [self.segment if text == 1 else type_id for type_id, text in types]

    def __len__(self) -> int:
        return len(self.encoding)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoding, name)


class Best:
    """The likeliest answers to the questions of `cut`. Only `most` are kept per question, whatever the number of windows."""

    def __init__(self, cut: Cut, *, most: int = MOST_ANSWERS) -> None:
        self._cut, self._most = cut, most
        self._top: list[list[tuple[float, int, int]]] = [[] for _ in range(cut.questions)]  # (-score, start, end)
        self._none = np.full(cut.questions, np.inf, np.float32)

    def add(self, windows: np.ndarray, outputs: np.ndarray) -> None:
        """Add float32 [window, length, 2], the start and end logits of these windows; each window once, in any order, padded or not."""
        for window, logits in zip(windows.tolist(), outputs, strict=True):
            question = int(self._cut.question[window])
            first, end, cls = self._cut.readable(window)
            if not (np.isfinite(logits[first:end]).all() and np.isfinite(logits[cls]).all()):
                self._none[question] = np.nan
                continue
            self._none[question] = np.minimum(self._none[question], logits[cls].sum(dtype=np.float32))
            answers = [*self._top[question], *self._answers(window, logits)]
            self._top[question] = _distinct_spans(answers)[: self._most]

    def outputs(self, *, impossible: bool, threshold: float = 0.0) -> np.ndarray:
        """Return float32 [question, 4], when all windows are added: start, end and score of the best answer, and `none`.

        Start and end are in characters of the context, the end exclusive. The score is the sum of both logits, `NO_SCORE` if the context
        has nothing to read. `none` is the sum of [CLS]'s logits in the window where that is smallest, less `threshold`. `impossible`: a
        question may have no answer; if its `none` is above its score, start and end are 0. Otherwise `none` is `NO_SCORE` and the best
        span is the answer. For a question with logits that are not finite, score and `none` are NaN.
        """
        outputs = self.best_spans(impossible=impossible)
        outputs[:, 3] -= threshold if impossible else 0
        outputs[outputs[:, 3] > outputs[:, 2], :2] = 0
        return outputs

    def best_spans(self, *, impossible: bool) -> np.ndarray:
        """As `outputs` without a threshold, with the best span even if no answer is likelier."""
        best = [top[0] if top else (-NO_SCORE, 0, 0) for top in self._top]
        outputs = np.array([(start, end, -low, 0) for low, start, end in best], np.float32).reshape(-1, 4)
        outputs[:, 3] = self._none if impossible else NO_SCORE
        outputs[np.isnan(self._none), 2:] = np.nan
        return outputs

    def n_best(self, question: int, n: int) -> list[tuple[int, int, float]]:
        """Return the `n` best answers, at most `most`, as (start, end, score), the best first; empty if nothing can be read."""
        return [(start, end, -low) for low, start, end in self._top[question][:n]]

    def _answers(self, window: int, logits: np.ndarray) -> list[tuple[float, int, int]]:
        """Return the best (-score, start, end) of one window. Of equal scores the first in the text comes first."""
        first, end, _, begin, stop = self._cut.bounds[window].tolist()
        spans, size = self._cut.offsets(window), self._cut.answer_tokens
        shown = (spans[:, 1] > spans[:, 0])[:, None]
        starts, ends = np.where(shown, logits[first:end], -np.inf).astype(np.float32).T
        ends = np.append(ends, np.full(size, -np.inf, np.float32))
        near = np.lib.stride_tricks.sliding_window_view(ends, size)[begin - first : stop - first]
        scores = (starts[begin - first : stop - first, None] + near).ravel()
        most = self._most
        while True:
            best = _largest(scores, most)
            start, more = np.divmod(best, size)
            start += begin - first
            columns = (-scores[best], spans[start, 0], spans[start + more, 1])
            answers = _distinct_spans(list(zip(*(column.tolist() for column in columns), strict=True)))
            if len(answers) >= self._most or len(best) < most:
                return answers
            most *= 2


def _distinct_spans(answers: list[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
    """Return the answers, the best first, and each span once: several tokens may have the same characters."""
    places = {(start, end): low for low, start, end in sorted(answers, reverse=True)}
    return sorted((low, *place) for place, low in places.items())


def _largest(scores: np.ndarray, most: int) -> np.ndarray:
    """Return indices of the `most` largest, fewer if fewer are not -inf; the same ones on every machine."""
    known = np.flatnonzero(scores > -np.inf)
    if len(known) > most:
        least = np.partition(scores[known], -most)[-most]
        known = known[scores[known] >= least]
    return known[np.argsort(-scores[known], kind="stable")][:most]


def _spans(context: str, offsets: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return `Cut.offsets` from the tokenizer's offsets."""
    spans = np.zeros((len(offsets), 2), np.int32)
    for index, (start, end) in enumerate(offsets):
        shown = context[start:end].lstrip()
        spans[index] = end - len(shown), end - len(shown) + len(shown.rstrip())
    return spans
