"""Exact match and F1 of answers by SQuAD's rules, and their resamples against a loop over drawn questions."""

from __future__ import annotations

import numpy as np
import pytest

from compress.errors import CompressError
from compress.metrics import FEWEST, AnswersHeadline
from compress.metrics.answers import answer_scores, given_answers, normalized_answer
from compress.significance import mcnemar_p, paired_bootstrap

BOTH = AnswersHeadline(("exact_match", "f1_span"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("an apple, a day", "apple day"),
        ("Theatre", "theatre"),  # an article inside of a word stays
        ("U.S.", "us"),
        ("5\u20133", "5\u20133"),  # a dash beyond ASCII is no punctuation of the script's
        ("well-known", "wellknown"),
        ("  two \n words ", "two words"),
        ("a.m.", "am"),  # punctuation goes before articles do
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
        ("new new york", ["new york york"], 0, 2 * 2 / 6),  # words count as often as they stand in both
        ("blue", ["red"], 0, 0),
        ("", [], 1, 1),
        ("something", [], 0, 0),
        ("", ["something"], 0, 0),
        ("The", [], 1, 1),  # nothing is left of it
        ("cat", ["The", "cat"], 1, 1),
        ("", ["The"], 1, 1),  # a gold answer of nothing but an article is none
        ("dog", ["cat dog", "dog house bird"], 0, 2 / 3),
    ],
)
def test_exact_match_and_f1_are_of_the_best_gold_answer(answer: str, gold: list[str], exact: int, f1: float) -> None:
    assert answer_scores(answer, gold) == (exact, pytest.approx(f1, abs=1e-12))


def outputs(exact: list[float], f1: list[float]) -> np.ndarray:
    made = np.zeros((len(exact), 6), np.float32)
    made[:, 2] = 1
    made[:, 4], made[:, 5] = exact, f1
    return made


def test_a_headline_is_the_mean_over_questions() -> None:
    made, gold = outputs([1, 0, 0, 1], [1, 0.5, 0, 1]), np.ones(4, np.int8)
    assert AnswersHeadline(("exact_match",))(made, gold) == 50
    assert AnswersHeadline(("f1_span",))(made, gold) == 62.5
    assert BOTH(made, gold) == 56.25
    with pytest.raises(CompressError, match="predictions for each of the 3 examples"):
        BOTH(made, gold[:3])
    with pytest.raises(CompressError, match="among exact_match, f1_span; found"):
        AnswersHeadline(("exact_match", "f1"))


def test_no_answer_is_given_where_it_is_likelier() -> None:
    found = np.array([[3, 9, 2.0, 1.0], [3, 9, 1.0, 2.0], [3, 9, 1.0, 1.0], [5, 6, -8, -1e9]], np.float32)
    assert given_answers(found).tolist() == [[3, 9], [0, 0], [3, 9], [5, 6]]


def test_models_differ_where_a_metric_of_the_task_does() -> None:
    base, other = outputs([1, 0, 0, 1], [1, 0.5, 0, 1]), outputs([1, 0, 0, 0], [1, 0.25, 0, 1])
    other[2, :2] = 4, 7  # another span that is as wrong
    gold = np.ones(4, np.int8)
    assert AnswersHeadline(("exact_match",)).differ(base, other).tolist() == [False, False, False, True]
    assert AnswersHeadline(("f1_span",)).differ(base, other).tolist() == [False, True, False, False]
    assert BOTH.changed([(base, other)], gold) == 2
    assert np.array_equal(AnswersHeadline(("exact_match",)).correct(base, gold), [True, False, False, True])  # type: ignore[arg-type]
    assert mcnemar_p(AnswersHeadline(("exact_match",)), base, other, gold) == 1
    assert mcnemar_p(BOTH, base, other, gold) is None


def drawn(seed: int, count: int = 80) -> np.ndarray:
    rng = np.random.default_rng(seed)
    f1 = rng.choice([0, 0.25, 0.5, 2 / 3, 1], count)
    return outputs((f1 == 1).tolist(), f1.tolist())


@pytest.mark.parametrize("metrics", [("exact_match",), ("f1_span",), ("exact_match", "f1_span")])
def test_resamples_are_the_metric_of_drawn_questions(metrics: tuple[str, ...]) -> None:
    base, other, gold = drawn(1), drawn(2), np.ones(80, np.int8)
    metric = AnswersHeadline(metrics)
    assert metric.changed([(base, other)], gold) >= FEWEST
    found = metric.resampled([(base, other)], gold, 40, np.random.default_rng(3))
    rows = np.random.default_rng(3).integers(80, size=(40, 80))  # as `draws` draws them
    for place, given in enumerate((base, other)):
        expected = [metric(given[sample], gold) for sample in rows]
        assert found[place] == pytest.approx(expected, abs=1e-9)


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
