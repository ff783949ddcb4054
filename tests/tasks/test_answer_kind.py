"""The question answering kind's outputs, gold and constant answer."""

from __future__ import annotations

import numpy as np
import pytest

from compress.metrics.answers import answer_scores
from compress.tasks import TASK_KINDS, of_words


def test_what_the_kind_says_of_answers() -> None:
    kind = TASK_KINDS["span"]
    outputs = np.array([[3, 9, 4, 1, 1, 1], [0, 0, 1, 2, 0, 0], [0, 0, 1, 3, 1, 1]], np.float32)
    gold = np.array([1, 1, 0], np.int8)
    assert kind.decisions is not None
    assert kind.answers(outputs).tolist() == [[3, 9], [0, 0], [0, 0]]
    assert kind.decisions.correct(outputs, gold).tolist() == [True, False, True]
    assert kind.decisions.confidence(outputs) == pytest.approx(1 / (1 + np.exp([-3, -1, -2])))
    assert [kind.labels.format(answer, ("start", "end")) for answer in kind.answers(outputs)[:2]] == [
        "characters 3 to 9",
        "no answer",
    ]
    form = kind.stored
    assert kind.output_count(("start", "end")) == 6
    assert form.fits(form.from_outputs(outputs), ()) and form.fits(gold, ())
    assert not form.fits(outputs[:, :4], ()) and not form.fits(outputs * 2, ())
    assert (
        form.fits(np.tile(gold[:, None] * 2.0, 6), ()) and not form.fits(gold - 1, ()) and not form.fits(gold + 0.5, ())
    )
    moved = outputs + np.array([0, 0, 0.5, 0.5, 0, 0], np.float32)
    assert kind.fidelity.divergence(outputs, moved) == pytest.approx(0.25)
    assert kind.fidelity.divergence(outputs, outputs) == 0
    always = outputs.copy()
    always[:, 3] = -1e9
    assert kind.logits(always).tolist() == [[4], [1], [1]]  # placeholder scores are in no mean
    nothing = kind.constant_baseline.outputs(np.empty(0, object), ("start", "end"), gold)
    assert kind.answers(nothing).tolist() == [[0, 0]] * 3
    assert kind.decisions.correct(nothing, gold).tolist() == [False, False, True]
    assert [kind.labels.format(each, ()) for each in gold] == ["an answer", "an answer", "no answer"]


def test_a_gold_answer_of_an_article_alone_is_none_for_the_floor_too() -> None:
    """As for the answers of models."""
    kind, labels = TASK_KINDS["span"], of_words([np.array([[0, 3]], np.int32), np.array([[4, 7]], np.int32)])
    gold = kind.labels.gold(labels, (["which?", "which?"], ["the cat", "the cat"]))
    nothing = kind.constant_baseline.outputs(labels, ("start", "end"), gold)
    assert nothing[:, 4].tolist() == [answer_scores("", [text])[0] for text in ("the", "cat")] == [1, 0]
