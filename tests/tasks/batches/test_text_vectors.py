"""Embedding tasks: their files, rows, scores, and the similarity of two models' vectors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import pearsonr, spearmanr

from compress.errors import CompressError
from compress.spec.task import Files, TaskSpec
from compress.tasks import TASK_KINDS, OwnFiles, Split, collate, encode, load_training, own_task, score, wordpiece
from compress.tasks.batches.text_vectors import EncodedTexts
from compress.tasks.kinds.embedding import nearest_kept, pair_vectors, vectors_of
from compress.tasks.own.template import task_yaml

FIRST = ["a good film", "the dull story of a very slow river is not good", "a dog", "a cat sings"]
SECOND = ["a fine movie", "a river", "the dog walks", "a cat sings"]


def spec(**fields: object) -> TaskSpec:
    defaults: dict[str, object] = {
        "name": "sts",
        "kind": "embedding",
        "text": ["one", "two"],
        "label": "score",
        "metrics": ["spearman"],
    }
    return TaskSpec.model_validate(defaults | {"files": Files(train="t.tsv", dev="d.tsv")} | fields)


def encoded(max_length: int = 16) -> EncodedTexts:
    split = Split((FIRST, SECOND), np.array([5, 1, 4, 5], np.float32), separate_texts=True)
    texts = encode(wordpiece(300), split, max_length)
    assert isinstance(texts, EncodedTexts)
    return texts


def unit(rows: int, width: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": ["one"]}, "two columns, whose vectors are compared"),
        ({"metrics": ["accuracy"]}, "do not fit kind `embedding`"),
        ({"labels": ["a", "b"]}, "has no `labels`"),
        ({"positive": "a"}, "no `positive` one"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        spec(**fields)


def test_every_text_is_a_row_of_its_own_cut_for_itself() -> None:
    tokenizer, texts = wordpiece(300), encoded(max_length=8)
    for row, text in enumerate([*FIRST, *SECOND]):
        ids = tokenizer.encode(text).ids
        own = texts.input_ids[row].tolist()
        assert own == ids if len(ids) <= 8 else (len(own) == 8 and own[:7] == ids[:7] and own[7] == ids[-1])
    assert len(texts) == 8 and len(texts.labels) == 4
    batch = collate(texts, np.array([0, 5]), 0)
    assert set(batch) == {"input_ids", "attention_mask", "token_type_ids"}
    assert not batch["token_type_ids"].any()


def test_outputs_are_cosines_and_both_vectors_in_any_order_of_rows() -> None:
    vectors, texts = unit(8, 5), encoded()
    order = np.random.default_rng(1).permutation(8)
    outputs = texts.collected((rows, vectors[rows]) for rows in np.split(order, [3, 4]))
    assert outputs.shape == (4, 11) and outputs.dtype == np.float32
    for pair in range(4):
        assert outputs[pair, 0] == pytest.approx(float(vectors[pair] @ vectors[pair + 4]), abs=1e-6)
    assert np.array_equal(vectors_of(outputs), vectors)
    assert np.array_equal(texts.by_row(outputs), vectors)


def test_pairs_that_are_taken_and_put_together_keep_both_texts() -> None:
    texts = encoded()
    part = texts.take(np.array([6, 0, 2]))  # rows of the pairs 2, 0 and 2
    assert part.labels.tolist() == [5, 4]
    assert [ids.tolist() for ids in part.input_ids] == [texts.input_ids[row].tolist() for row in (0, 2, 4, 6)]
    both = part.concat(texts)
    assert both.labels.tolist() == [5, 4, 5, 1, 4, 5]
    rows = [0, 2, 0, 1, 2, 3, 4, 6, 4, 5, 6, 7]
    assert [ids.tolist() for ids in both.input_ids] == [texts.input_ids[row].tolist() for row in rows]


def test_scores_are_correlations_of_the_cosines_alone() -> None:
    gold = np.array([1, 5, 3, 2, 4, 2.5], np.float32)
    outputs = pair_vectors(unit(12, 4))
    scores = score(spec(metrics=["spearman", "pearson"]), (), outputs, gold)
    assert scores["spearman"] == pytest.approx(100 * np.asarray(spearmanr(outputs[:, 0], gold))[0], abs=1e-6)
    assert scores["pearson"] == pytest.approx(
        100 * np.asarray(pearsonr(outputs[:, 0], gold))[0], abs=1e-4
    )  # cosines in fp32
    form = TASK_KINDS["embedding"].stored
    assert score(spec(), (), form.to_outputs(form.from_outputs(outputs), ()), gold)["spearman"] == scores["spearman"]


def test_a_vector_that_is_no_number_fails() -> None:
    outputs = pair_vectors(unit(12, 4))
    outputs[2, 5] = np.nan
    with pytest.raises(Exception, match="1 of 6 pairs have logits that are not finite"):
        score(spec(), (), outputs, np.arange(6, dtype=np.float32))


def test_how_near_two_models_vectors_are() -> None:
    one = unit(40, 6)
    other = one + 0.05 * unit(40, 6, seed=2)
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    kind, outputs = TASK_KINDS["embedding"], (pair_vectors(one), pair_vectors(other))
    cosines = [float(a @ b) for a, b in zip(one, other, strict=True)]
    measures = kind.fidelity.similarity(*outputs)
    assert measures["mean_cosine"] == pytest.approx(np.mean(cosines), abs=1e-6)
    assert measures["worst_cosine"] == pytest.approx(min(cosines), abs=1e-6)
    assert kind.fidelity.divergence(*outputs) == pytest.approx(1 - np.mean(cosines), abs=1e-6)
    assert measures["nearest_kept"] == pytest.approx(_kept_by_sorting(one, other), abs=1e-12)
    assert kind.fidelity.similarity(outputs[0], outputs[0])["nearest_kept"] == 1


def _kept_by_sorting(one: np.ndarray, other: np.ndarray) -> float:
    shared = 0
    for row in range(len(one)):
        nearest = []
        for vectors in (one, other):
            order = [int(n) for n in np.argsort(-(vectors @ vectors[row])) if n != row]
            nearest.append(set(order[:10]))
        shared += len(nearest[0] & nearest[1])
    return shared / (10 * len(one))


def test_few_and_equal_texts_have_neighbours_too() -> None:
    assert nearest_kept(unit(3, 4), unit(3, 4, seed=1)) == 1  # all others count as nearest
    assert nearest_kept(np.ones((4, 2)), np.ones((4, 2))) == 1  # one text


def _write(folder: Path, name: str, rows: int = 40) -> Path:
    path = folder / name
    lines = [f"{name} text {n}\tother {name} {n * 7}\t{n % 5}.5" for n in range(rows)]
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *lines]) + "\n", encoding="utf-8")
    return path


def test_files_are_read_by_kind_and_kept_apart(tmp_path: Path) -> None:
    own = OwnFiles(
        _write(tmp_path, "train.tsv"), _write(tmp_path, "dev.tsv"), "sentence1", "sentence2", "score", "embedding"
    )
    task, folder = own_task(own)
    assert task.metrics == ("spearman",) and not task.pairs
    data = load_training(task, folder, None)
    assert data.train.separate_texts and data.tuning.separate_texts and data.labels == ()
    with pytest.raises(CompressError, match="--pair: an embedding task has two columns of texts"):
        own_task(OwnFiles(own.train, own.dev, "sentence1", None, "score", "embedding"))


def test_the_same_files_are_a_regression_where_nobody_says_otherwise(tmp_path: Path) -> None:
    own = OwnFiles(_write(tmp_path, "train.tsv"), _write(tmp_path, "dev.tsv"), "sentence1", "sentence2", "score")
    task, folder = own_task(own)
    assert task.kind == "regression" and task.pairs
    assert not load_training(task, folder, None).train.separate_texts


def test_pairs_without_a_score_need_no_task_file(tmp_path: Path) -> None:
    train, dev = _write(tmp_path, "train.tsv"), _write(tmp_path, "dev.tsv")
    own = OwnFiles(train, dev, "sentence1", "sentence2", "score", "embedding")
    header, first, *rest = train.read_text().splitlines()
    train.write_text("\n".join([header, first.rpartition("\t")[0] + "\t", *rest]) + "\n")
    data = load_training(*own_task(own), None)
    assert "train: 1 of 40 pairs have no score, and are left out" in data.notes
    text, *_ = task_yaml(own, tmp_path / "t.yaml")
    assert "kind: embedding  #" in text and "a tenth of train is held out" in text
    with pytest.raises(CompressError, match="score: no label"):
        own_task(replace(own, kind="regression"))


def test_texts_alone_need_no_task_file_beside_a_tuning_file(tmp_path: Path) -> None:
    train, dev = _write(tmp_path, "train.tsv"), _write(tmp_path, "dev.tsv")
    own = OwnFiles(train, dev, "sentence1", "sentence2", "score", "embedding")
    header, *rows = train.read_text().splitlines()
    train.write_text("\n".join([header, *(row.rpartition("\t")[0] + "\t" for row in rows)]) + "\n")
    data = load_training(*own_task(own), None, _write(tmp_path, "tuning.tsv", 10))
    assert len(data.train) == 40 and len(data.tuning) == 10
    text, *_ = task_yaml(own, tmp_path / "t.yaml")
    assert "# 40 examples" in text and "name one with scores, since no pair of train has any" in text
    dev.write_text(train.read_text().replace("train.tsv", "dev.tsv"))
    with pytest.raises(CompressError, match=r"dev\.tsv: no pair has a score"):
        task_yaml(own, tmp_path / "t.yaml")
