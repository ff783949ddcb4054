"""An embedding task with several sets through the command line: run, report over seeds, ship, verify."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from recipe_runs import TEACHER, compress

from compress.report.grouping.predictions import load_answers
from compress.report.grouping.recorded_scores import Scored, metric_of
from compress.results import PER_EXAMPLE, Result, TaskInfo, read_result
from compress.spec.task import Synthetic
from compress.tasks.synthetic import generate

pytestmark = pytest.mark.end_to_end

SETS = {"small": 20, "large": 40}
TASK = {
    "name": "sts",
    "title": "Two sets",
    "kind": "embedding",
    "text": ["one", "two"],
    "label": "score",
    "metrics": ["spearman", "pearson"],
    "headline": "mean",
    "max_length": 24,
    "files": {"train": "train.tsv", "dev": {name: f"{name}.tsv" for name in SETS}},
}
OPTIONS = ("--task", "sts.yaml", "--teacher", "tiny.yaml", "--threads", "1", "--no-bench", "--precision", "fp32")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (folder / "sts.yaml").write_text(yaml.safe_dump(TASK, sort_keys=False), encoding="utf-8")
    rows = generate(Synthetic(generator="similarity", train=120, dev=sum(SETS.values())))
    parts = {"train": rows["train"], "small": rows["dev"][: SETS["small"]], "large": rows["dev"][SETS["small"] :]}
    for name, part in parts.items():
        lines = ["one\ttwo\tscore", *("\t".join(map(str, row)) for row in part), "not\trated\t"]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = compress("run", "int8", *OPTIONS, "--seeds", "2", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def runs(world: Path) -> list[Path]:
    return sorted(path.parent for path in (world / "runs").glob("int8-*/result.json"))


def test_the_headline_is_the_mean_over_the_sets(runs: list[Path]) -> None:
    assert len(runs) == 2
    result = read_result(runs[0])
    assert result.task.splits == ("mean", "small", "large") and result.task.headline == "mean"
    assert {name: result.task.data.rows[name] for name in SETS} == SETS
    assert "small: 1 of 21 pairs have no score, and are left out" in result.task.data.notes
    for model in result.models:
        for metric in ("spearman", "pearson"):
            each = [model.scores[name][metric] for name in SETS]
            assert model.scores["mean"][metric] == pytest.approx(np.mean(each), abs=1e-9)
        assert model.headline == pytest.approx(np.mean(list(model.scores["mean"].values())), abs=1e-9)
    assert result.final.delta is not None and result.final.delta.low <= result.final.delta.points
    assert result.final.fidelity is not None and result.final.fidelity.examples == sum(SETS.values())


def test_answers_on_record_give_the_mean_and_the_report_shows_each_set(world: Path, runs: list[Path]) -> None:
    done = compress("report", *runs, "-o", "out", cwd=world)
    assert done.returncode == 0, done.stderr
    page = (world / "out" / "report.md").read_text(encoding="utf-8")
    assert all(f"Spearman, {name}" in page for name in ("mean", *SETS))
    assert "Scores are on the whole of small and large; the headline score is the mean over these." in page
    run = read_result(runs[0])
    for file in (runs[0] / "predictions.npz", world / "out" / PER_EXAMPLE):
        (answers,), gold = load_answers(file, run, [run.final.predictions])
        assert len(gold) == sum(SETS.values())
        assert metric_of([Scored(run, run.final, answers, gold, file)])(answers, gold) == pytest.approx(
            run.final.headline, abs=0.01
        )


@pytest.mark.slow
def test_a_bundle_is_verified_on_every_set_and_their_mean(world: Path, runs: list[Path]) -> None:
    assert compress("ship", runs[0], "-o", "bundle", cwd=world).returncode == 0
    done = compress("verify", "bundle", "--task", "sts.yaml", "--threads", "1", "--json", cwd=world)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("mean", *SETS):
        assert f"{name} spearman" in done.stdout
    card = (world / "bundle" / "README.md").read_text(encoding="utf-8")
    assert "On 2 whole splits, of which the first score is the mean" in card and "On `small`:" in card


@pytest.mark.parametrize("fields", [{"splits": ["mean", "small"]}, {"splits": ["mean", "small", "other"]}])
def test_a_mean_over_sets_that_are_not_on_record_is_refused(runs: list[Path], fields: dict[str, list[str]]) -> None:
    document = json.loads(Result.model_dump_json(read_result(runs[0])))["task"]
    with pytest.raises(ValueError, match="expected at least two splits after the first, each with its `rows`"):
        TaskInfo.model_validate(document | fields)
