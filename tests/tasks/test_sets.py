"""Several sets of an embedding task: their mean as the headline score, and pairs without a score."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from compress.errors import CompressError
from compress.spec.task import TaskSpec
from compress.tasks import fingerprint, load_reported, load_training, reported_gold, reported_scores, score

SETS = {"a": "a.tsv", "b": "b.tsv"}


def spec(dev: str | dict[str, str] = "a.tsv", **fields: object) -> TaskSpec:
    files = {"train": "train.tsv", "dev": dev, "header": False, "columns": ["score", "one", "two"], "quoting": False}
    defaults = {"name": "sts", "kind": "embedding", "text": ["one", "two"], "label": "score", "metrics": ["spearman"]}
    return TaskSpec.model_validate(defaults | {"files": files} | fields)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, rows in {"train": 40, "a": 12, "b": 8}.items():
        lines = [f"{n * 7 % 5}.5\t{name} one {n}\t{name} two {n}" for n in range(rows)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("dev", "fields", "message"),
    [
        ("a.tsv", {}, "`headline: mean` needs several reported splits"),
        ({"a": "a.tsv"}, {}, "needs several reported splits"),
        (SETS | {"mean": "c.tsv"}, {}, "no split may be called `mean`"),
        (SETS, {"kind": "regression"}, "is not for a regression task, whose headline score is that of its first"),
    ],
)
def test_a_mean_over_nothing_or_of_another_kind_is_refused(
    dev: str | dict[str, str], fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        spec(dev, headline="mean", **fields)


def test_the_mean_stands_before_its_sets(here: Path) -> None:
    task = spec(SETS, headline="mean")
    data = load_reported(task, here, None)
    assert data.names == ("mean", "a", "b") and data.first == "mean" and list(data.splits) == ["a", "b"]
    gold = reported_gold(data)
    assert gold["mean"].tolist() == [*gold["a"].tolist(), *gold["b"].tolist()]
    rng = np.random.default_rng(0)
    outputs = {name: rng.normal(size=(len(split), 5)).astype(np.float32) for name, split in data.splits.items()}
    scores = reported_scores(data, data.gathered(outputs), gold)
    alone = {name: score(task, (), outputs[name], gold[name])["spearman"] for name in SETS}
    assert {name: scores[name]["spearman"] for name in SETS} == alone
    assert scores["mean"]["spearman"] == pytest.approx((alone["a"] + alone["b"]) / 2, abs=1e-9)


def test_the_first_of_several_is_the_headline_where_nothing_is_said(here: Path) -> None:
    data = load_reported(spec(SETS), here, None)
    assert data.names == ("a", "b") and data.first == "a" and set(reported_gold(data)) == {"a", "b"}
    assert data.fingerprint == fingerprint(spec(SETS, headline="mean"), here, None), "it is of the same data"


def test_pairs_without_a_score_are_left_out_and_counted(here: Path) -> None:
    path = here / "b.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1], lines[4] = "\t" + lines[1].partition("\t")[2], "  \t" + lines[4].partition("\t")[2]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = load_reported(spec(SETS), here, None).splits["b"]
    assert data.texts[0] == [f"b one {n}" for n in (0, 2, 3, 5, 6, 7)] and len(data.labels) == 6
    notes = load_training(spec(SETS), here, None).notes
    assert "b: 2 of 8 pairs have no score, and are left out" in notes and not any("a:" in note for note in notes)


def test_a_score_that_is_no_number_keeps_its_line(here: Path) -> None:
    path = here / "b.tsv"
    path.write_text("\tone\ttwo\n1.5\tone\ttwo\nhigh\tone\ttwo\n", encoding="utf-8")
    with pytest.raises(CompressError, match=r"b\.tsv.*\n?.*3.*expected a finite score, found 'high'"):
        load_reported(spec(SETS), here, None)


def test_a_set_without_any_score_is_refused(here: Path) -> None:
    (here / "b.tsv").write_text("\tone\ttwo\n\tthree\tfour\n", encoding="utf-8")
    with pytest.raises(CompressError, match=r"b\.tsv: no pair has a score to measure vectors by"):
        load_reported(spec(SETS), here, None)


def test_texts_alone_train_where_the_tuning_split_has_a_file(here: Path) -> None:
    path = here / "train.tsv"
    path.write_text("".join(f"\tone {n}\ttwo {n}\n" for n in range(40)), encoding="utf-8")
    (here / "own.tsv").write_text("".join(f"{n % 5}.5\ther {n}\this {n}\n" for n in range(10)), encoding="utf-8")
    data = load_training(spec(), here, None, here / "own.tsv")
    assert data.train.texts[0] == [f"one {n}" for n in range(40)] and len(data.tuning.labels) == 10
    with pytest.raises(CompressError, match=r"train\.tsv: no pair has a score"):
        load_training(spec(), here, None)
