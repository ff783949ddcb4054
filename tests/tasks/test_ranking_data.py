"""Passages of queries: files, notes, errors, the tuning split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from compress.errors import CompressError
from compress.spec.task import Files, Hub, TaskSpec
from compress.tasks import OwnFiles, load_reported, load_training, own_task
from compress.tasks.loading.tuning import carve
from compress.tasks.own.template import guess_columns, task_yaml

Triple = tuple[str, str, Any]


def rows_of(queries: int, passages: int = 4, words: str = "Query") -> list[Triple]:
    """Return the pairs of all queries, mixed: one passage of each is relevant, and all queries share the same passages."""
    rows = [(f"{words} {q}", f"passage {p}", int(p == q % passages)) for q in range(queries) for p in range(passages)]
    return [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]


def write(path: Path, rows: list[Triple], label: str = "relevance") -> Path:
    lines = [json.dumps({"query": query, "passage": passage, label: value}) for query, passage, value in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def own(folder: Path, train: list[Triple], dev: list[Triple] | None = None, label: str = "relevance") -> OwnFiles:
    dev = dev or rows_of(5, words="Other query")
    paths = write(folder / "faq.jsonl", train, label), write(folder / "dev.jsonl", dev, label)
    return OwnFiles(*paths)


def spec_of(**fields: Any) -> TaskSpec:
    usual = {
        "name": "faq",
        "kind": "ranking",
        "text": ["query", "passage"],
        "label": "relevance",
        "metrics": ["mrr@10"],
    }
    return TaskSpec.model_validate(usual | {"files": Files(train="faq.jsonl", dev="dev.jsonl")} | fields)


@pytest.mark.parametrize("label", ["relevance", "label", "score"])
def test_files_with_columns_of_these_names_are_a_ranking(tmp_path: Path, label: str) -> None:
    spec, folder = own_task(own(tmp_path, rows_of(30), label=label))
    assert (spec.kind, spec.text, spec.label) == ("ranking", ("query", "passage"), label)
    assert spec.metrics == ("ndcg@10", "mrr@10") and spec.known_labels == ()
    data = load_training(spec, folder, None)
    assert data.train.labels.dtype == np.float64 and data.train.labels.shape[1] == 2
    assert "train: 120 passages of 30 queries" in data.notes


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_true_and_false_are_relevances(tmp_path: Path, suffix: str) -> None:
    rows = [(query, passage, bool(value)) for query, passage, value in rows_of(30)]
    if suffix == "csv":
        text = "".join(f"{query},{passage},{str(value).lower()}\n" for query, passage, value in rows)
        files = OwnFiles(tmp_path / "faq.csv", tmp_path / "dev.csv")
        for path in (files.train, files.dev):
            path.write_text("query,passage,relevance\n" + text)
    else:
        files = own(tmp_path, rows, rows)
    spec, folder = own_task(files)
    assert spec.kind == "ranking"
    labels = load_reported(spec, folder, None).splits["dev"].labels
    assert labels[:, 0].tolist() == [float(value) for _, _, value in rows]


def test_pairs_of_one_label_a_query_stay_a_classification(tmp_path: Path) -> None:
    """For example questions with one answer each, which is right or wrong."""
    train = [(f"query {n}", f"passage {n}", n % 2) for n in range(30)]
    assert own_task(own(tmp_path, train, label="label"))[0].kind == "classification"
    files = OwnFiles(tmp_path / "faq.jsonl", tmp_path / "dev.jsonl", kind="ranking")
    with pytest.raises(
        CompressError, match=r"faq\.jsonl: no query has passages of different relevance; training needs"
    ):
        load_training(*own_task(files), None)


def test_what_the_user_says_comes_first(tmp_path: Path) -> None:
    files = own(tmp_path, rows_of(30), label="label")
    said = OwnFiles(files.train, files.dev, kind="classification")
    assert own_task(said)[0].kind == "classification"
    with pytest.raises(CompressError, match="--pair: a ranking task has two columns of text"):
        own_task(OwnFiles(files.train, files.dev, text="query", kind="ranking"))


def test_queries_are_numbered_as_they_first_stand(tmp_path: Path) -> None:
    train = [("b", "x", 2.5), ("a", "x", 0), ("b", "y", 0), ("a", "y", "1")]
    own(tmp_path, rows_of(4), train)
    split = load_reported(spec_of(), tmp_path, None).splits["dev"]
    assert split.labels.tolist() == [[2.5, 0], [0, 1], [0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (-1, r"faq\.jsonl: line 3: expected a relevance of at least 0, found -1"),
        ("high", r"faq\.jsonl: line 3: expected a finite relevance, found 'high'"),
        (None, r"line 3: expected a finite relevance, found None"),
    ],
)
def test_a_relevance_that_is_none_is_refused_with_its_line(tmp_path: Path, bad: Any, said: str) -> None:
    rows = rows_of(10)
    rows[2] = (*rows[2][:2], bad)
    own(tmp_path, rows)
    with pytest.raises(CompressError, match=said):
        load_training(spec_of(), tmp_path, None)


def test_a_relevance_below_0_makes_no_other_kind_of_a_ranking(tmp_path: Path) -> None:
    rows = rows_of(10)
    rows[2] = (*rows[2][:2], -1)
    files = own(tmp_path, rows)
    with pytest.raises(CompressError, match=r"^\S*faq\.jsonl: line 3: expected a relevance of at least 0, found -1$"):
        load_training(*own_task(files), None)


def test_a_split_without_anything_relevant_is_refused_before_training(tmp_path: Path) -> None:
    own(tmp_path, rows_of(10), [("a", "x", 0), ("a", "y", 0)])
    with pytest.raises(CompressError, match=r"dev\.jsonl: no passage has a relevance above 0"):
        load_training(spec_of(), tmp_path, None)


def test_queries_without_a_relevant_passage_are_counted(tmp_path: Path) -> None:
    own(tmp_path, rows_of(10), [*rows_of(3, words="Other query"), ("none", "x", 0), ("none", "y", 0)])
    notes = load_training(spec_of(), tmp_path, None).notes
    assert "dev: 1 of 4 queries have no passage with a relevance above 0, and are left out of scores" in notes


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": ["query"]}, r"`text` of a ranking task is two columns, \[query, passage\], found \['query'\]"),
        ({"metrics": ["accuracy"]}, "do not fit kind `ranking`"),
        ({"labels": ["no", "yes"]}, "a ranking task has no `labels`"),
        ({"kind": "regression"}, r"metrics \['mrr@10'\] do not fit kind `regression`"),
    ],
)
def test_what_a_task_file_may_not_say(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        spec_of(**fields)


def test_the_tuning_split_has_whole_queries(tmp_path: Path) -> None:
    """Although all share their passages; queries that differ only in case stay together."""
    rows = [*rows_of(40), *((query.upper(), passage, value) for query, passage, value in rows_of(10))]
    own(tmp_path, rows)
    data = load_training(spec_of(), tmp_path, None)
    train, tuning = ({text.lower() for text in split.texts[0]} for split in (data.train, data.tuning))
    assert tuning and not train & tuning
    assert 10 <= len(data.tuning) <= 20 and len(data.train) + len(data.tuning) == 200
    assert all(
        (data.tuning.labels[data.tuning.labels[:, 1] == query, 0] > 0).any() for query in data.tuning.labels[:, 1]
    )


def test_the_same_queries_are_drawn_from_a_file_in_another_order(tmp_path: Path) -> None:
    queries = []
    for rows in (rows_of(40), rows_of(40)[::-1]):
        own(tmp_path, rows)
        queries.append(sorted(load_training(spec_of(), tmp_path, None).tuning.texts[0]))
    assert queries[0] == queries[1]


def test_one_query_is_held_out_where_a_tenth_is_less(tmp_path: Path) -> None:
    own(tmp_path, rows_of(3, passages=20))
    data = load_training(spec_of(), tmp_path, None)
    assert len(data.tuning) == 20 and len(set(data.tuning.texts[0])) == 1
    with pytest.raises(CompressError, match=r"20 passages of 1 query are too few .*; expected at least two queries"):
        carve(spec_of(), data.tuning, "here")


def test_a_tuning_file_loses_whole_queries_that_are_reported(tmp_path: Path) -> None:
    own(
        tmp_path, rows_of(10), [(query.replace("Query", "dev"), passage, value) for query, passage, value in rows_of(4)]
    )
    tuning = [
        ("dev 0", "other passage", 1),
        ("dev 0", "passage 2", 0),
        ("new", "x", 0),
        ("new", "y", 1),
        ("new", "z", 0),
    ]
    path = write(tmp_path / "tuning.jsonl", tuning)
    data = load_training(spec_of(), tmp_path, None, path)
    assert data.tuning.texts[0] == ["new"] * 3 and len(data.train) == 40
    write(path, [*tuning[:2], ("new", "x", 0), ("new", "y", 0), ("new", "z", 0)])
    with pytest.raises(
        CompressError, match=r"tuning\.jsonl: no query outside the reported splits has a relevant passage"
    ):
        load_training(spec_of(), tmp_path, None, path)


def test_columns_of_a_saved_data_set(tmp_path: Path) -> None:
    names = ("query", "passage", "relevance")
    parts: Any = {
        split: datasets.Dataset.from_dict(
            dict(zip(names, map(list, zip(*rows_of(count, words=split), strict=True)), strict=True))
        )
        for split, count in (("train", 12), ("validation", 3))
    }
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "saved"))
    spec = spec_of(files=None, hub=Hub(path="saved"))
    data = load_training(spec, tmp_path, None)
    assert (len(data.train), len(data.tuning)) == (44, 4) and data.train.ranks_groups
    assert load_reported(spec, tmp_path, None).splits["dev"].labels[:, 0].sum() == 3


def test_init_writes_a_task_of_ranking(tmp_path: Path) -> None:
    files = own(tmp_path, rows_of(30))
    text, *_ = task_yaml(guess_columns(files, ()), tmp_path / "faq.yaml")
    assert "kind: ranking" in text and "text: [query, passage]" in text and "label: relevance" in text
    assert "metrics: [ndcg@10, mrr@10]" in text


def test_reported_queries_with_passages_of_one_relevance_are_noted(tmp_path: Path) -> None:
    note = "dev has no query with passages of different relevance: its scores cannot compare models"
    single = [("Other query 1", "passage 1", 1), ("Other query 2", "passage 2", 2)]
    for dev, notes in ((single, [note]), ([*single, ("Other query 2", "passage 3", 0)], [])):
        spec, folder = own_task(own(tmp_path, rows_of(30), dev))
        data = load_training(spec, folder, None)
        assert [text for text in data.notes if "cannot compare" in text] == notes
