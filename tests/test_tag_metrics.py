"""Metrics of word labels against seqeval, and their resamples against a loop over drawn texts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from seqeval import metrics as seqeval
from seqeval.scheme import IOB2

from compress.errors import CompressError
from compress.metrics import FEWEST, TagsHeadline, are_entities
from compress.metrics.tags import chunks, concatenate_labels, entity_flips, split_labels, type_scores
from compress.runtime.kinds import Prediction
from compress.runtime.kinds.tagging import entities
from compress.stats.significance import mcnemar_p, paired_bootstrap

NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER", "B-ORG-X", "I-ORG-X")
SHARES = (0.4, 0.1, 0.15, 0.1, 0.15, 0.05, 0.05)


def noisy_outputs(seed: int, texts: int = 60) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return outputs that are right for three words in four, gold, and the number of words of each text."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, texts).tolist()
    gold = [rng.choice(len(NAMES), size, p=SHARES) for size in sizes]
    answers = [np.where(rng.random(len(ids)) < 0.75, ids, rng.choice(len(NAMES), len(ids))) for ids in gold]
    return np.eye(len(NAMES))[np.concatenate(answers)], concatenate_labels(gold), sizes


def names_of(ids: np.ndarray, sizes: list[int]) -> list[list[str]]:
    return [[NAMES[label] for label in part] for part in np.split(ids, np.cumsum(sizes)[:-1])]


def test_gold_keeps_where_texts_begin() -> None:
    texts = [np.array([2, 0, 0], np.int32), np.zeros(0, np.int32), np.array([0], np.int32), np.array([1, 3], np.int32)]
    gold = concatenate_labels(texts)
    assert gold.dtype == np.int64 and gold.tolist() == [~2, 0, 0, ~0, ~1, 3]
    ids, begins = split_labels(gold)
    assert ids.tolist() == [2, 0, 0, 0, 1, 3] and begins.tolist() == [True, False, False, True, True, False]
    assert [words.tolist() for words in texts] == [[2, 0, 0], [], [0], [1, 3]]  # not changed
    assert concatenate_labels([]).shape == (0,)


@pytest.mark.parametrize("seed", range(8))
def test_metrics_agree_with_seqeval(seed: int) -> None:
    outputs, gold, sizes = noisy_outputs(seed)
    ids = split_labels(gold)[0]
    true, predictions = names_of(ids, sizes), names_of(outputs.argmax(1), sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval warns about types that are never predicted
        expected = {
            "entity_f1": seqeval.f1_score(true, predictions),
            "accuracy": seqeval.accuracy_score(true, predictions),
        }
        report: Any = seqeval.classification_report(true, predictions, output_dict=True)
    for name, share in expected.items():
        assert TagsHeadline((name,), NAMES)(outputs, gold) == pytest.approx(100 * share, abs=1e-9), name
    both = TagsHeadline(("entity_f1", "accuracy"), NAMES)(outputs, gold)
    assert both == pytest.approx(50 * sum(expected.values()), abs=1e-9)
    scores = type_scores(outputs, gold, NAMES)
    assert list(scores) == ["LOC", "ORG-X", "PER"]
    for name, score in scores.items():
        row = report[name]
        assert score.entities == row["support"]
        assert (score.precision, score.recall, score.f1) == pytest.approx(
            tuple(100 * row[key] for key in ("precision", "recall", "f1-score")), abs=1e-9
        )


def strict_entities(labels: list[str]) -> set[tuple[int, int, str]]:
    """Return (first, end, type) like seqeval's `scheme.IOB2`: an entity begins only at B-, continues at I- of its type, and ends at any
    other tag."""
    spans = set()
    for first, label in enumerate(labels):
        if label.startswith("B-"):
            end = first + 1
            while end < len(labels) and labels[end] == f"I-{label[2:]}":
                end += 1
            spans.add((first, end, label[2:]))
    return spans


@pytest.mark.parametrize("seed", range(8))
def test_strict_f1_agrees_with_seqeval_and_with_its_rules_written_out(seed: int) -> None:
    outputs, gold, sizes = noisy_outputs(seed)
    true, predictions = names_of(split_labels(gold)[0], sizes), names_of(outputs.argmax(1), sizes)
    theirs = [
        [{(text, *one) for one in strict_entities(labels)} for text, labels in enumerate(each)]
        for each in (true, predictions)
    ]
    mine, answered = (set().union(*texts) for texts in theirs)
    expected = 200 * len(mine & answered) / (len(mine) + len(answered))
    f1 = TagsHeadline(("entity_f1_strict",), NAMES)(outputs, gold)
    assert f1 == pytest.approx(expected, abs=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f1 == pytest.approx(100 * seqeval.f1_score(true, predictions, mode="strict", scheme=IOB2), abs=1e-9)
        report: Any = seqeval.classification_report(true, predictions, mode="strict", scheme=IOB2, output_dict=True)
    assert abs(f1 - TagsHeadline(("entity_f1",), NAMES)(outputs, gold)) > 0.1
    for name, each in type_scores(outputs, gold, NAMES, strict=True).items():
        assert (each.f1, each.entities) == (pytest.approx(100 * report[name]["f1-score"]), report[name]["support"])


def test_an_entity_that_no_b_begins_counts_by_the_usual_rule_alone() -> None:
    gold = concatenate_labels([np.array([3, 4, 0, 1])])  # B-PER I-PER O B-LOC
    outputs = np.eye(7)[[4, 4, 0, 1]]  # I-PER I-PER O B-LOC
    assert TagsHeadline(("entity_f1",), NAMES)(outputs, gold) == 100
    assert TagsHeadline(("entity_f1_strict",), NAMES)(outputs, gold) == pytest.approx(200 / 3)
    assert TagsHeadline(("entity_f1", "entity_f1_strict"), NAMES)(outputs, gold) == pytest.approx(250 / 3)


def test_an_entity_never_runs_into_the_next_text() -> None:
    gold = concatenate_labels([np.array([0, 3]), np.array([4, 0])])  # B-PER | I-PER: two entities
    assert TagsHeadline(("entity_f1",), NAMES)(np.eye(7)[[0, 3, 4, 0]], gold) == 100
    assert type_scores(np.eye(7)[[0, 3, 4, 0]], gold, NAMES)["PER"].entities == 2


@pytest.mark.parametrize("seed", range(4))
def test_entities_of_single_words_need_no_inside(seed: int) -> None:
    """Neighbours of one type are entities of their own, in scores and in what is decoded."""
    names, rng = ("O", "B-LOC", "B-PER", "I-PER"), np.random.default_rng(seed)
    gold, answers = (rng.choice(4, 80, p=(0.3, 0.4, 0.2, 0.1)) for _ in range(2))
    true, predictions = ([[names[label] for label in part] for part in ids.reshape(8, 10)] for ids in (gold, answers))
    stored = concatenate_labels([*gold.reshape(8, 10)])
    for strict, metric in ((False, "entity_f1"), (True, "entity_f1_strict")):
        options: Any = {"mode": "strict", "scheme": IOB2} if strict else {}
        expected = 100 * seqeval.f1_score(true, predictions, **options)
        assert TagsHeadline((metric,), names)(np.eye(4)[answers], stored) == pytest.approx(expected, abs=1e-9)
    spans = np.array([[0, 4], [5, 9]])
    decoded = entities("Oslo Rome", spans, [Prediction("B-LOC", 0.9), Prediction("B-LOC", 0.8)], joined=True)
    assert [(each.text, each.label) for each in decoded] == [("Oslo", "LOC"), ("Rome", "LOC")]


def test_nothing_gold_and_nothing_given_is_no_division_by_zero() -> None:
    assert TagsHeadline(("entity_f1",), NAMES)(np.eye(7)[[0, 0]], concatenate_labels([np.array([0, 0])])) == 0


@pytest.mark.parametrize("metrics", [("entity_f1",), ("accuracy",), ("entity_f1_strict", "accuracy", "entity_f1")])
def test_resamples_are_the_metric_of_drawn_texts(metrics: tuple[str, ...]) -> None:
    outputs, gold, sizes = noisy_outputs(2)
    sizes = [size for size in sizes if size]
    other = outputs[np.random.default_rng(5).permutation(len(outputs))]
    metric = TagsHeadline(metrics, NAMES)
    assert metric.count_changed([(outputs, other)], gold) >= FEWEST
    drawn = metric.resampled([(outputs, other)], gold, 50, np.random.default_rng(9))
    words = np.split(np.arange(len(gold)), np.cumsum(sizes)[:-1])
    counts = np.random.default_rng(9).integers(len(sizes), size=(50, len(sizes)))  # as `draws` draws them
    for sample, texts in enumerate(counts):
        rows = np.concatenate([words[text] for text in texts])
        for place, each in enumerate((outputs, other)):
            assert drawn[place, sample] == pytest.approx(metric(each[rows], gold[rows]), abs=1e-9)


def test_words_differ_and_texts_change() -> None:
    gold = concatenate_labels([np.array([3, 4, 0]), np.array([0, 0]), np.array([1])])
    base, other = np.eye(7)[[3, 4, 0, 0, 0, 1]], np.eye(7)[[3, 0, 1, 0, 0, 2]]
    metric = TagsHeadline(("entity_f1",), NAMES)
    assert metric.differ(base, other).tolist() == [False, True, True, False, False, True]
    assert metric.count_changed([(base, other)], gold) == 2
    assert metric.count_changed([(base, base)], gold) == 0
    assert mcnemar_p(TagsHeadline(("accuracy",), NAMES), base, other, gold) is None


@pytest.mark.parametrize("metric", ["entity_f1", "entity_f1_strict", "accuracy"])
def test_one_flip_is_not_told_from_chance_and_many_are(metric: str) -> None:
    outputs, gold, _ = noisy_outputs(3, texts=300)
    right, scored = np.eye(7)[split_labels(gold)[0]], TagsHeadline((metric,), NAMES)
    once = outputs.copy()
    wrong = np.flatnonzero((outputs != right).any(1))
    once[wrong[0]] = right[wrong[0]]
    points, low, high = paired_bootstrap(scored, outputs, once, gold)
    assert low <= 0 <= points <= high and low < high < 2
    _, low, _ = paired_bootstrap(scored, outputs, right, gold)
    assert low > 0


def test_equal_answers_have_an_interval_with_a_width() -> None:
    outputs, gold, _ = noisy_outputs(4, texts=200)
    for name in ("entity_f1", "entity_f1_strict", "accuracy"):
        points, low, high = paired_bootstrap(TagsHeadline((name,), NAMES), outputs, outputs, gold)
        assert points == 0 and -1.5 < low < 0 < high < 1.5


def test_labels_of_no_entities_have_no_entity_f1() -> None:
    tags = ("ADJ", "NOUN", "O")
    assert not are_entities(tags) and are_entities(NAMES) and not are_entities(("O",))
    for name in ("entity_f1", "entity_f1_strict"):
        with pytest.raises(
            CompressError, match=rf"metric `{name}` counts entities, .* found .*'ADJ'.*; take `accuracy`"
        ):
            TagsHeadline((name,), tags)
    assert TagsHeadline(("accuracy",), tags)(np.eye(3)[[0, 1]], concatenate_labels([np.array([0, 0])])) == 50


def test_gold_without_texts_is_refused() -> None:
    with pytest.raises(CompressError, match="say where texts begin"):
        TagsHeadline(("accuracy",), NAMES)(np.eye(7)[[0, 1]], np.array([0, 1]))


def test_entities_that_are_not_both_models():
    names = ("O", "B-A", "I-A", "B-B", "I-B")
    gold = concatenate_labels([np.array([1, 2, 0, 3]), np.array([0, 1])])
    base, other = np.eye(5)[[1, 2, 0, 3, 0, 1]], np.eye(5)[[1, 0, 0, 3, 1, 1]]
    # base: A(0-1), B(3), A(5); other: A(0), B(3), A(4), A(5)
    assert entity_flips(base, other, gold, names) == (3, 5)
    assert entity_flips(base, base, gold, names) == (0, 3)


def test_the_runtime_joins_words_to_the_entities_that_are_scored() -> None:
    """The runtime has its own code, since a bundle runs without this package; both agree on any labels, even impossible sequences."""
    names, rng = ("O", "B-A", "I-A", "B-B", "I-B"), np.random.default_rng(5)
    for _ in range(200):
        ids = rng.integers(0, 5, rng.integers(1, 12))
        reference = chunks(ids, np.arange(len(ids)) == 0, names)
        spans = np.stack([np.arange(len(ids)), np.arange(1, len(ids) + 1)], axis=1)
        words = [Prediction(names[label], 1.0) for label in ids]
        actual = entities("x" * len(ids), spans, words, joined=True)
        expected = [
            (first, last + 1, "AB"[kind])
            for first, last, kind in zip(reference.first, reference.last, reference.type, strict=True)
        ]
        assert [(each.start, each.end, each.label) for each in actual] == expected
