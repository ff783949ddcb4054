"""Questions and passages in windows, and their best spans, for any tokenizer and window length."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tokenizer_toys import TOKENIZERS, text, wordpiece
from tokenizers import Tokenizer, processors

from compress.runtime.batches import pad_batch
from compress.runtime.passages import NO_SCORE, Best, Cut, Passages

EACH = pytest.mark.parametrize("name", list(TOKENIZERS))


def cls_last() -> Tokenizer:
    own = wordpiece(True, True)
    own.post_processor = processors.TemplateProcessing(
        "$A [SEP] [CLS]", "$A [SEP] $B:1 [SEP]:1 [CLS]:2", [("[SEP]", 3), ("[CLS]", 2)]
    )
    return own


def odd(rng: random.Random) -> str:
    return re.sub(r"<mask>|</s>", "", text(rng))  # after these a byte-level tokenizer has other offsets in a window


def logits(cut: Cut, rng: np.random.Generator, padding: int = 3) -> list[np.ndarray]:
    return [rng.normal(size=(len(one) + padding, 2)).astype(np.float32) for one in cut.encodings]


@EACH
def test_windows_hold_the_whole_context_and_each_token_may_begin_an_answer_in_one(name: str) -> None:
    """Identifies a token by its number in the whole context: it belongs to the window where its shorter side of context is longest."""
    own, rng, several = TOKENIZERS[name](), random.Random(name), 0
    special = own.num_special_tokens_to_add(True)
    for _ in range(120):
        question, context, length = odd(rng)[:20], odd(rng), rng.choice((9, 12, 17, 40, 200))
        cut = Passages(own, length)([question], [context])
        whole = own.encode(context, add_special_tokens=False).ids
        best: dict[int, tuple[int, int]] = {}
        question_ids = cut.encodings[0].ids[: cut.readable(0)[0]]
        room = length - special - cut.encodings[0].sequence_ids.count(0)
        step = room - min(max(room // 4, 1), room - 1)
        owned: list[int] = []
        for window, encoding in enumerate(cut.encodings):
            first, end, cls = cut.readable(window)
            assert len(encoding) <= length
            assert cls == 0
            assert encoding.ids[:first] == question_ids
            assert encoding.ids[first:end] == whole[window * step : window * step + room]
            for place in range(end - first):
                side = min(place, end - first - 1 - place)
                if side > best.get(window * step + place, (-1, 0))[0]:
                    best[window * step + place] = side, window
            begin, stop = cut.bounds[window, 3:]
            owned += [window] * (stop - begin)
        assert [best[number][1] for number in range(len(whole))] == owned, (question, context)
        several += len(cut.encodings) > 2
    assert several > 20


@EACH
def test_best_spans_are_those_of_a_plain_search_in_any_order_of_windows(name: str) -> None:
    own, rng, numbers = TOKENIZERS[name](), random.Random(name), np.random.default_rng(0)
    questions, contexts = [odd(rng)[:15] for _ in range(40)], [odd(rng) for _ in range(40)]
    cut = Passages(own, 24, answer_tokens=4)(questions, contexts)
    window_logits = logits(cut, numbers)
    best = Best(cut.without_encodings(), most=5)
    for window in numbers.permutation(len(window_logits)):
        best.add(np.array([window]), window_logits[window][None])
    outputs = best.outputs(impossible=False)
    assert outputs.dtype == np.float32
    for question, context in enumerate(contexts):
        expected = plain_search(cut, question, context, window_logits)
        assert best.n_best(question, 3) == [(*place, score) for place, score in expected[:3]]
        if expected:
            assert tuple(outputs[question, :3]) == (*expected[0][0], np.float32(expected[0][1]))
        else:
            assert outputs[question].tolist() == [0, 0, NO_SCORE, NO_SCORE]
        for start, end, _ in best.n_best(question, 5):
            assert context[start:end] == context[start:end].strip() != ""
    none = best.outputs(impossible=True)[:, 3]
    expected_none = [min(window_logits[i][0].sum() for i in np.flatnonzero(cut.question == each)) for each in range(40)]
    np.testing.assert_array_equal(none, np.array(expected_none, np.float32))


def plain_search(
    cut: Cut, question: int, context: str, window_logits: list[np.ndarray]
) -> list[tuple[tuple[int, int], float]]:
    scores: dict[tuple[int, int], float] = {}
    for window in np.flatnonzero(cut.question == question).tolist():
        first, end, _ = cut.readable(window)
        begin, stop = cut.bounds[window, 3:]
        offsets = cut.encodings[window].offsets
        shows = [place for place in range(first, end) if context[slice(*offsets[place])].strip()]
        for start in (place for place in shows if begin <= place < stop):
            for last in (place for place in shows if start <= place < start + 4):
                a, b = offsets[start][0], offsets[last][1]
                whole = context[a:b]
                place = a + len(whole) - len(whole.lstrip()), b - len(whole) + len(whole.rstrip())
                score = float(np.float32(window_logits[window][start, 0] + window_logits[window][last, 1]))
                scores[place] = max(score, scores.get(place, -np.inf))
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def test_a_batch_of_windows_is_as_one_after_another() -> None:
    cut = Passages(wordpiece(True, True), 16)(["a", "film"], ["good film. " * 20, "bad"])
    window_logits = np.random.default_rng(1).normal(size=(len(cut.encodings), 16, 2)).astype(np.float32)
    together, apart = Best(cut), Best(cut)
    together.add(np.arange(len(window_logits)), window_logits)
    for window in range(len(window_logits)):
        apart.add(np.array([window]), window_logits[window : window + 1])
    np.testing.assert_array_equal(together.outputs(impossible=True), apart.outputs(impossible=True))


@EACH
def test_every_window_has_the_segments_of_a_pair(name: str) -> None:
    """In all windows but the first, tokenizers gives the second text segment 1, whatever its template: RoBERTa has no segment 1."""
    own = TOKENIZERS[name]()
    cut, pair = Passages(own, 16)(["a film"], ["good bad film " * 9]), own.encode("a film", "good")
    segments = dict(zip(pair.sequence_ids, pair.type_ids, strict=True))
    assert len(cut.encodings) > 2
    for one in cut.encodings:
        assert len(one.type_ids) == len(one.ids) == len(one)
        for whose, segment in zip(one.sequence_ids, one.type_ids, strict=True):
            assert whose is None or segment == segments[whose]
    encoded = pad_batch(cut.encodings, {"token_type_ids": np.int64}, 0)["token_type_ids"]
    assert encoded.max() == max(pair.type_ids)


def test_cls_may_be_last() -> None:
    cut = Passages(cls_last(), 14)(["a film", ""], ["good bad film " * 9, ""])
    for window, encoding in enumerate(cut.encodings):
        first, end, cls = cut.readable(window)
        assert encoding.tokens[cls] == "[CLS]"
        assert cls == len(encoding) - 1
        assert first <= end <= cls - bool(end)
    assert len(cut.encodings) > 3


def test_texts_together_are_what_they_are_alone_and_cuts_follow_one_another() -> None:
    passages, rng = Passages(wordpiece(True, True), 20), random.Random(3)
    questions, contexts = ["", *(odd(rng)[:30] for _ in range(9))], [*(odd(rng) for _ in range(9)), ""]
    together = passages(questions, contexts)
    joined = passages([], [])
    for question, context in zip(questions, contexts, strict=True):
        joined = joined.concat(passages([question], [context]))
    assert joined.questions == together.questions == 10
    np.testing.assert_array_equal(joined.question, together.question)
    np.testing.assert_array_equal(joined.bounds, together.bounds)
    assert [one.ids for one in joined.encodings] == [one.ids for one in together.encodings]
    for mine, other in zip(joined.spans, together.spans, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(("length", "most"), [(384, 64), (23, 10), (5, 1), (4, 0)])
def test_a_long_question_leaves_half_of_the_room(length: int, most: int) -> None:
    own = wordpiece(True, True)
    cut = Passages(own, length)(["good film " * 100, "good"], ["bad " * 400, "bad"])
    assert cut.encodings[0].sequence_ids.count(0) == most
    assert all(len(one) <= length for one in cut.encodings)
    first, end, _ = cut.readable(0)
    assert end - first == length - 3 - most
    assert own.truncation is None


def test_a_question_above_its_tokens_ends_where_a_word_does_or_before() -> None:
    """Part of a long word has other tokens than the word; a question without word boundaries is shortened repeatedly."""
    for name, make in TOKENIZERS.items():
        cut = Passages(make(), 12)(["ab" * 400, "x" * 300 + " film" * 30, "漢字" * 90], ["film"] * 3)
        assert max(one.sequence_ids.count(0) for one in cut.encodings) <= 4, name
        assert len(cut.encodings) >= 3


def test_threads_do_not_cut_for_one_another() -> None:
    """The overlap of windows depends on the question's length, and is a setting of the tokenizer."""
    passages = Passages(wordpiece(True, True), 40)
    pairs = [("a " * (number % 18), "good bad film " * 60) for number in range(18)]
    alone = [passages([question], [context]) for question, context in pairs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda pair: passages([pair[0]], [pair[1]]), pairs * 20))
    for place, cut in enumerate(together):
        assert [one.ids for one in cut.encodings] == [one.ids for one in alone[place % 18].encodings]


def answered(question: str, context: str, places: Mapping[int, tuple[float, float]], **options: int) -> Best:
    """Search the logits of a model that gives 0 except at these tokens of its one window."""
    cut = Passages(wordpiece(True, True), 64, **options)([question], [context])
    window_logits = np.zeros((1, len(cut.encodings[0]), 2), np.float32)
    for place, both in places.items():
        window_logits[0, place] = both
    best = Best(cut)
    best.add(np.array([0]), window_logits)
    return best


def test_a_question_without_an_answer() -> None:
    """[CLS] is at 0, the context begins at 3."""
    none = answered("a", "good bad film", {0: (3, 3), 4: (2, 2)})
    assert none.outputs(impossible=True).tolist() == [[0, 0, 4, 6]]
    assert none.outputs(impossible=False).tolist() == [[5, 8, 4, np.float32(NO_SCORE)]]
    assert none.n_best(0, 1) == [(5, 8, 4.0)]
    assert answered("a", "good bad film", {0: (2, 2), 4: (2, 2)}).outputs(impossible=True).tolist() == [[5, 8, 4, 4]]


def test_an_answer_is_of_the_context_in_order_and_not_too_long() -> None:
    backwards = {3: (0, 9), 5: (9, 0)}
    assert answered("a", "good bad film", backwards).outputs(impossible=True)[0, :3].tolist() == [0, 4, 9]
    assert answered("a", "good bad film", {1: (9, 9), 2: (9, 9), 6: (9, 9)}).outputs(impossible=True)[0, 2] == 0
    apart = {3: (5, 0), 5: (0, 5)}
    assert answered("a", "good bad film", apart, answer_tokens=3).n_best(0, 1) == [(0, 13, 10.0)]
    assert answered("a", "good bad film", apart, answer_tokens=2).n_best(0, 1) == [(0, 4, 5.0)]


def test_of_equal_scores_the_first_comes_first() -> None:
    assert [place[:2] for place in answered("a", "good bad film", {}).n_best(0, 20)] == [
        *[(0, 4), (0, 8), (0, 13)],
        *[(5, 8), (5, 13), (9, 13)],
    ]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 4])
def test_logits_that_are_not_finite_are_seen(value: float, place: int) -> None:
    outputs = answered("a", "good bad film", {place: (value, 0)}).outputs(impossible=False)
    assert np.isnan(outputs[0, 2:]).all()
    padding = answered("a", "good bad film", {1: (value, 0)}).outputs(
        impossible=False
    )  # the question's tokens are ignored
    assert np.isfinite(padding).all()
