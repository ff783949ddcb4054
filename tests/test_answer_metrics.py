"""SQuAD's exact match and F1 of answers, and their resamples against a loop over drawn questions."""

from __future__ import annotations

import numpy as np
import pytest

from compress.errors import CompressError
from compress.metrics import FEWEST, AnswersHeadline
from compress.metrics.answers import (
    ANSWER_OUTPUTS,
    EXACT,
    F1,
    answer_scores,
    apply_threshold,
    best_no_answer_threshold,
    context_of,
    decided_spans,
    has_answer,
    normalized_answer,
    question_gold,
)
from compress.stats.significance import mcnemar_p, paired_bootstrap
from compress.tasks import TASK_KINDS

BOTH = AnswersHeadline(("exact_match", "f1_span"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("an apple, a day", "apple day"),
        ("Theatre", "theatre"),  # an article inside a word stays
        ("U.S.", "us"),
        ("5\u20133", "5\u20133"),  # the script's punctuation is ASCII only
        ("well-known", "wellknown"),
        ("  two \n words ", "two words"),
        ("a.m.", "am"),  # punctuation is removed before articles
        ("The", ""),
    ],
)
def test_answers_are_normalized_as_the_official_script_does(text: str, expected: str) -> None:
    assert normalized_answer(text) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "f1"),
    [
        ("the Broncos", ["Denver Broncos", "Broncos"], 1, 1),
        ("Denver Broncos", ["Broncos"], 0, 2 / 3),  # precision 1/2, recall 1
        ("Santa Clara", ["Levi's Stadium", "in Santa Clara, California"], 0, 2 * 2 / (2 + 4)),
        ("new new york", ["new york york"], 0, 2 * 2 / 6),  # a word counts as often as both have it
        ("blue", ["red"], 0, 0),
        ("", [], 1, 1),
        ("something", [], 0, 0),
        ("", ["something"], 0, 0),
        ("The", [], 1, 1),  # normalized to nothing
        ("cat", ["The", "cat"], 1, 1),
        ("", ["The"], 1, 1),  # a gold answer that is only an article counts as none
        ("dog", ["cat dog", "dog house bird"], 0, 2 / 3),
    ],
)
def test_exact_match_and_f1_are_of_the_best_gold_answer(answer: str, gold: list[str], exact: int, f1: float) -> None:
    assert answer_scores(answer, gold) == (exact, pytest.approx(f1, abs=1e-12))


def outputs(exact: list[float], f1: list[float]) -> np.ndarray:
    rows = np.zeros((len(exact), 6), np.float32)
    rows[:, 2] = 1
    rows[:, 4], rows[:, 5] = exact, f1
    return rows


def test_a_headline_is_the_mean_over_questions() -> None:
    answers, gold = outputs([1, 0, 0, 1], [1, 0.5, 0, 1]), np.ones(4, np.int8)
    assert AnswersHeadline(("exact_match",))(answers, gold) == 50
    assert AnswersHeadline(("f1_span",))(answers, gold) == 62.5
    assert BOTH(answers, gold) == 56.25
    with pytest.raises(CompressError, match="predictions for each of the 3 examples"):
        BOTH(answers, gold[:3])
    with pytest.raises(CompressError, match="among exact_match, f1_span; found"):
        AnswersHeadline(("exact_match", "f1"))


def test_no_answer_is_given_where_it_is_likelier() -> None:
    answers = np.array([[3, 9, 2.0, 1.0], [3, 9, 1.0, 2.0], [3, 9, 1.0, 1.0], [5, 6, -8, -1e9]], np.float32)
    assert decided_spans(answers).tolist() == [[3, 9], [0, 0], [3, 9], [5, 6]]


def test_models_differ_where_a_metric_of_the_task_does() -> None:
    base, other = outputs([1, 0, 0, 1], [1, 0.5, 0, 1]), outputs([1, 0, 0, 0], [1, 0.25, 0, 1])
    other[2, :2] = 4, 7  # another span, equally wrong
    gold = np.ones(4, np.int8)
    assert AnswersHeadline(("exact_match",)).differ(base, other).tolist() == [False, False, False, True]
    assert AnswersHeadline(("f1_span",)).differ(base, other).tolist() == [False, True, False, False]
    assert BOTH.count_changed([(base, other)], gold) == 2
    assert np.array_equal(AnswersHeadline(("exact_match",)).correct(base, gold), [True, False, False, True])  # type: ignore[arg-type]
    assert mcnemar_p(AnswersHeadline(("exact_match",)), base, other, gold) == 1
    assert mcnemar_p(BOTH, base, other, gold) is None
    assert mcnemar_p(AnswersHeadline(("exact_match",)), base, other, np.array([3, 3, 5, 7])) is None, "of one context"


def drawn(seed: int, count: int = 80) -> np.ndarray:
    rng = np.random.default_rng(seed)
    f1 = rng.choice([0, 0.25, 0.5, 2 / 3, 1], count)
    return outputs((f1 == 1).tolist(), f1.tolist())


def contexts(count: int, seed: int = 7) -> np.ndarray:
    """Return gold for `count` questions on a third as many contexts, in random order."""
    numbers = np.random.default_rng(seed).integers(1, max(count // 3, 2), count)
    return 2 * numbers + 1


@pytest.mark.parametrize("metrics", [("exact_match",), ("f1_span",), ("exact_match", "f1_span")])
def test_resamples_are_the_metric_of_drawn_contexts(metrics: tuple[str, ...]) -> None:
    """A context is drawn with all of its questions."""
    base, other, gold = drawn(1), drawn(2), contexts(80)
    metric = AnswersHeadline(metrics)
    assert metric.count_changed([(base, other)], gold) >= FEWEST
    resamples = metric.resampled([(base, other)], gold, 40, np.random.default_rng(3))
    questions = [np.flatnonzero(gold == number) for number in np.unique(gold)]
    draws = np.random.default_rng(3).integers(len(questions), size=(40, len(questions)))  # as `draws` draws them
    samples = [np.concatenate([questions[context] for context in sample]) for sample in draws]
    for place, each in enumerate((base, other)):
        assert resamples[place] == pytest.approx([metric(each[rows], gold[rows]) for rows in samples], abs=1e-9)
    apart = metric.resampled([(base, other)], np.ones(80, np.int8), 40, np.random.default_rng(3))
    rows = np.random.default_rng(3).integers(80, size=(40, 80))
    assert apart[0] == pytest.approx([metric(base[sample], gold) for sample in rows], abs=1e-9), "of no known context"
    beside = metric.resampled([(base, other)], np.tile(gold[:, None], (1, 6)), 40, np.random.default_rng(3))
    assert np.array_equal(beside, resamples)


def test_questions_of_a_context_err_together_and_intervals_are_wider() -> None:
    """Models that answer all questions of a context alike give no more evidence than one question per context."""
    base, other = (np.repeat(drawn(seed, 60), 5, axis=0) for seed in (1, 2))
    together, apart = np.repeat(2 * np.arange(1, 61) + 1, 5), 2 * np.arange(1, 301) + 1
    wide, narrow = (np.diff(paired_bootstrap(BOTH, base, other, gold)[1:]).item() for gold in (together, apart))
    assert wide == pytest.approx(5**0.5 * narrow, rel=0.15)
    assert BOTH.count_changed([(base, other)], together) <= 60 < BOTH.count_changed([(base, other)], apart)


def test_gold_has_the_context_and_whether_an_answer_counts() -> None:
    places = [np.array(spans, np.int32).reshape(-1, 2) for spans in ([(0, 3)], [], [(2, 5)], [(0, 3), (4, 7)])]
    gold = question_gold(["the cat", "the cat", "a cat", "the cat"], places)
    assert has_answer(gold).tolist() == [False, False, True, True], "nothing is left of `the`"
    assert context_of(gold).tolist() == [0, 0, 1, 0]
    assert len(set(context_of(np.array([1, 0, 1, 5])).tolist())) == 4, "those of no known context have their own"


def test_one_change_is_not_told_from_chance_and_many_are() -> None:
    base, gold = drawn(4, 300), np.ones(300, np.int8)
    once, right = base.copy(), base.copy()
    once[np.flatnonzero(base[:, 4] == 0)[0], 4:] = 1
    right[:, 4:] = 1
    points, low, high = paired_bootstrap(BOTH, base, once, gold)
    assert low <= 0 <= points <= high and high - low < 4
    points, low, _ = paired_bootstrap(BOTH, base, right, gold)
    assert 0 < low < points
    points, low, high = paired_bootstrap(BOTH, base, base, gold)
    assert points == 0 and -1.5 < low < 0 < high < 1.5


def confident_answers(seed: int, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Return outputs of a model that is too confident in spans, and gold; a third of the questions have no answer."""
    rng = np.random.default_rng(seed)
    f1 = np.where(rng.random(count) < 1 / 3, 0, rng.choice([0, 0.5, 1], count))
    answers = outputs((f1 == 1).tolist(), f1.tolist())
    answers[:, :2] = 3, 7
    gold = 2 * np.arange(1, count + 1) + (rng.random(count) < 2 / 3)
    answers[gold % 2 == 0, 4:] = 0
    answers[:, 2] = rng.normal(6, 2, count)
    answers[:, 3] = answers[:, 2] - 3 + 2 * rng.normal(size=count) + 2 * (gold % 2 == 0)
    return answers, gold


@pytest.mark.parametrize("metrics", [("exact_match",), ("exact_match", "f1_span")])
@pytest.mark.parametrize("seed", range(4))
def test_no_threshold_is_better_than_the_chosen_one(seed: int, metrics: tuple[str, ...]) -> None:
    answers, gold = confident_answers(seed)
    metric = AnswersHeadline(metrics)
    threshold = best_no_answer_threshold(answers, gold, metric)
    margins = answers[:, 3].astype(float) - answers[:, 2]
    tried = [0.0, *(margins - 1e-3), *(margins + 1e-3), margins.min() - 1, margins.max() + 1]
    reached = {by: score_at(metric, answers, gold, by) for by in tried}
    score = metric(apply_threshold(answers, gold, threshold), gold)
    assert score == pytest.approx(score_at(metric, answers, gold, threshold))
    assert score == pytest.approx(max(reached.values())) and score > reached[0.0]


def score_at(metric: AnswersHeadline, answers: np.ndarray, gold: np.ndarray, threshold: float) -> float:
    """Return the score, computed question by question."""
    points = []
    for row, answered in zip(answers, gold % 2, strict=True):
        none = row[3] - row[2] > threshold
        scores = {"exact_match": row[4], "f1_span": row[5]}
        points += [float(not answered) if none else scores[name] for name in metric.metrics]
    return 100 * float(np.mean(points))


def test_where_no_threshold_is_better_it_is_zero() -> None:
    answers, gold = confident_answers(0)
    answers[:, 3] = np.where(gold % 2, answers[:, 2] - 1, answers[:, 2] + 1)
    assert best_no_answer_threshold(answers, gold, BOTH) == 0
    always = answers.copy()
    always[:, 3] = -1e9
    assert best_no_answer_threshold(always, gold, BOTH) == 0
    assert np.array_equal(apply_threshold(always, gold, 2.5), always), "there is always an answer"


def test_a_context_without_words_and_a_score_that_is_none_move_no_threshold() -> None:
    answers, gold = confident_answers(1)
    expected = best_no_answer_threshold(answers, gold, BOTH)
    odd = np.tile(answers[:1], (2, 1))
    odd[0, :4], odd[1, 2:4] = (0, 0, -1e9, 1), np.nan
    more = np.concatenate([answers, odd])
    threshold = best_no_answer_threshold(more, np.append(gold, [2, 2]), BOTH)
    assert threshold == expected
    after = apply_threshold(more, np.append(gold, [2, 2]), threshold)
    assert after[-2].tolist() == [0, 0, -1e9, pytest.approx(1 - threshold), 1, 1] and np.isnan(after[-1, 2:4]).all()


def test_what_is_decided_is_given() -> None:
    answers, gold = confident_answers(2)
    for threshold in (-2.0, 0.0, 1.5):
        after = apply_threshold(answers, gold, threshold)
        none = answers[:, 3] - threshold > answers[:, 2]
        assert 0 < none.sum() < len(none)
        assert np.array_equal(decided_spans(after), np.where(none[:, None], 0, answers[:, :2]).astype(int))
        assert np.array_equal(after[~none, 4:], answers[~none, 4:])
        assert np.array_equal(after[none, 4], (gold % 2 == 0)[none])


def test_exact_answers_lost_and_gained_are_counted_apart() -> None:
    """Of ten questions, both models answer the first right, the first model alone the next three, the second model alone two more."""
    before, after = np.zeros((10, ANSWER_OUTPUTS), np.float32), np.zeros((10, ANSWER_OUTPUTS), np.float32)
    before[:4, EXACT] = 1
    after[[0, 4, 5], EXACT] = 1
    after[1:4, F1] = 0.99  # nearly exact does not count
    assert TASK_KINDS["span"].fidelity.exact_flips(before, after) == (3, 2)
    assert TASK_KINDS["span"].fidelity.exact_flips(before, before) == (0, 0)
    assert TASK_KINDS["classification"].fidelity.exact_flips(before, after) is None


def test_a_tie_of_the_span_and_none_is_answered_at_zero() -> None:
    answers = np.zeros((3, ANSWER_OUTPUTS), np.float32)
    answers[:, :2], answers[:, 2], answers[:, 3] = (3, 7), 5, (5, 4, 6)
    answers[:2, 4:] = 1
    assert best_no_answer_threshold(answers, np.array([3, 5, 6]), BOTH) == 0
