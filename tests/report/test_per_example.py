"""The compact copy of predictions: a committed report can render its page again without the runs, and contains no texts."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compress.cli.runs import report
from compress.errors import CompressError
from compress.report import collect, write_report
from compress.report.grouping.groups import title
from compress.report.grouping.intervals import over_seeds
from compress.report.grouping.predictions import find_predictions, load_answers, write_answers
from compress.report.page import tasks_of
from compress.results import PER_EXAMPLE, Result, write_result

Make = Callable[..., Result]
EXAMPLES = 408


def regression(result: Result, folder: Path) -> Result:
    """Write predictions for STS-B; return the result with their scores."""
    rng, names = np.random.default_rng(result.seed), [model.predictions for model in result.models]
    gold = np.random.default_rng(99).uniform(0, 5, EXAMPLES).astype(np.float32)
    outputs = {
        name: (gold + rng.normal(0, 1 + place, EXAMPLES))[:, None].astype(np.float32)
        for place, name in enumerate(names)
    }
    (folder / result.run).mkdir(parents=True)
    arrays = {f"{name}/dev": output for name, output in outputs.items()} | {"gold/dev": gold}
    np.savez(folder / result.run / "predictions.npz", allow_pickle=False, **arrays)
    scores = [100 * float(np.corrcoef(outputs[name][:, 0], gold)[0, 1]) for name in names]
    models = tuple(
        model.model_copy(update={"scores": {"dev": {"pearson": score}}, "headline": score})
        for model, score in zip(result.models, scores, strict=True)
    )
    task = result.task.model_copy(update={"metrics": ("pearson",)})
    written = result.model_copy(update={"models": models, "task": task})
    write_result(written, folder / result.run)
    return written


@pytest.fixture
def runs(fake: Make, run_directory: Make, tmp_path: Path) -> list[Result]:
    """Return three seeds of a classification and of a regression."""
    classifications = [run_directory(fake(seed=seed)) for seed in range(3)]
    return classifications + [regression(fake(task="stsb", seed=seed), tmp_path / "runs") for seed in range(3)]


def pages(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_report_gives_its_page_again_when_the_runs_are_gone(runs: list[Result], tmp_path: Path) -> None:
    folder, moved = tmp_path / "report", tmp_path / "elsewhere"
    write_report(runs, folder, folders=[tmp_path / "runs"])
    page = pages(folder)
    assert b"predictions of all seeds" in page["report.md"]
    shutil.rmtree(tmp_path / "runs")
    shutil.copytree(folder, moved)
    for name in ("report.md", "report.html", "plot.svg"):
        (moved / name).unlink()
    again = collect([moved])
    assert again == runs
    write_report(again, moved, folders=[moved])
    assert pages(moved) == page
    # Without the copy the intervals differ: the page above used more than results.json.
    (moved / PER_EXAMPLE).unlink()
    write_report(again, moved, folders=[moved])
    assert pages(moved)["report.md"] != page["report.md"]


def test_the_differences_are_those_of_the_runs(runs: list[Result], tmp_path: Path) -> None:
    copy = tmp_path / "copy" / PER_EXAMPLE
    copy.parent.mkdir()
    write_answers(runs, [tmp_path / "runs"], copy)
    mine, theirs = (over_seeds([folder]) for folder in (tmp_path / "runs", copy))
    compared = 0
    for task in tasks_of(runs, [tmp_path / "runs"]):
        for variant in task.variants:
            for model in (title(model) for model in variant.first.models[1:]):
                assert mine(variant, model) == theirs(variant, model)
                compared += 1
    assert compared == 4


def test_it_is_small_has_each_answer_once_and_no_text(runs: list[Result], tmp_path: Path) -> None:
    same = runs[0].model_copy(update={"run": "the-same-again"})
    shutil.copytree(tmp_path / "runs" / runs[0].run, tmp_path / "runs" / same.run)
    write_result(same, tmp_path / "runs" / same.run)
    file = tmp_path / PER_EXAMPLE
    write_answers([*runs, same], [tmp_path / "runs"], file)
    with np.load(file, allow_pickle=False) as arrays:
        index = json.loads(str(arrays["index"]))
        shapes = {name: (arrays[name].shape, arrays[name].dtype) for name in arrays.files if name != "index"}
    assert index["sst2/dev"]["the-same-again"] == index["sst2/dev"][runs[0].run]
    assert shapes == {
        "sst2/dev": ((1 + 3 * 3, 400), np.dtype(np.uint8)),
        "sst2/dev/tokens": ((400,), np.dtype(np.int32)),
        "stsb/dev": ((1 + 3 * 3, EXAMPLES), np.dtype(np.float32)),
    }
    assert file.stat().st_size < 400 * 9 + EXAMPLES * 10 * 4 + 2000
    write_answers([*runs, same], [tmp_path / "runs"], tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == file.read_bytes()


def test_answers_are_decisions_of_logits_and_scores_as_they_are(runs: list[Result], tmp_path: Path) -> None:
    own = tmp_path / "runs" / runs[0].run / "predictions.npz"
    with np.load(own) as arrays:
        logits, gold = arrays["student-int8/dev"] * 3 - 1, arrays["gold/dev"]
    np.savez(own, **{"student-int8/dev": logits, "gold/dev": gold})
    (answers,), labels = load_answers(own, runs[0], ["student-int8"])
    assert answers.tolist() == np.eye(2)[logits.argmax(1)].tolist()
    assert labels.tolist() == gold.tolist()
    own = tmp_path / "runs" / runs[3].run / "predictions.npz"
    (answers,), labels = load_answers(own, runs[3], ["student-fp32"])
    with np.load(own) as arrays:
        assert answers.tolist() == arrays["student-fp32/dev"][:, 0].tolist()
        assert labels.tolist() == arrays["gold/dev"].tolist()


def test_predictions_are_found_by_run_by_pattern_beside_a_file_and_in_a_report(
    runs: list[Result], tmp_path: Path
) -> None:
    own = tmp_path / "runs" / runs[1].run / "predictions.npz"
    for place in (own.parent, own.parent.parent, own.parent / "result.json", tmp_path / "runs" / "distil*"):
        assert find_predictions(runs[1], [place]) == own
    report = tmp_path / "report"
    write_report(runs[:2], report, folders=[tmp_path / "runs"])
    assert find_predictions(runs[1], [report, tmp_path / "runs"]) == own  # a run's own come first
    assert find_predictions(runs[1], [report]) == report / PER_EXAMPLE
    assert find_predictions(runs[1], [report / "results.json"]) == report / PER_EXAMPLE
    assert find_predictions(runs[2], [report]) is None


@pytest.mark.slow
def test_a_runs_own_folder_and_a_report_without_predictions_get_no_copy(runs: list[Result], tmp_path: Path) -> None:
    own = tmp_path / "runs" / runs[0].run
    write_report([runs[0]], own, folders=[own])
    write_report([runs[0]], tmp_path / "bare", folders=[])
    assert (own / "report.md").exists()
    assert (tmp_path / "bare" / "report.md").exists()
    assert not (own / PER_EXAMPLE).exists()
    assert not (tmp_path / "bare" / PER_EXAMPLE).exists()
    write_report([runs[0]], tmp_path / "bare", folders=[own])  # the predictions are available again
    assert (tmp_path / "bare" / PER_EXAMPLE).exists()
    write_report([runs[0]], tmp_path / "bare", folders=[])  # its copy is still its own
    assert (tmp_path / "bare" / PER_EXAMPLE).exists()
    write_report([runs[1]], tmp_path / "bare", folders=[])
    assert not (tmp_path / "bare" / PER_EXAMPLE).exists()


def test_a_file_of_that_name_that_is_not_ours_is_not_replaced(runs: list[Result], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / PER_EXAMPLE).write_bytes(b"mine")
    with pytest.raises(CompressError, match=r"per_example\.npz: is no report of this tool's"):
        write_report(runs, tmp_path / "mine", folders=[tmp_path / "runs"])
    assert (tmp_path / "mine" / PER_EXAMPLE).read_bytes() == b"mine"


def test_other_gold_labels_are_refused(runs: list[Result], tmp_path: Path) -> None:
    own = tmp_path / "runs" / runs[1].run / "predictions.npz"
    with np.load(own) as arrays:
        changed = dict(arrays)
    changed["gold/dev"] = 1 - changed["gold/dev"]
    np.savez(own, allow_pickle=False, **changed)
    with pytest.raises(CompressError, match=r"seed1.*gold labels differ from those of the other runs of sst2"):
        write_answers(runs, [tmp_path / "runs"], tmp_path / PER_EXAMPLE)


def packed(**arrays: object) -> bytes:
    content = io.BytesIO()
    np.savez(
        content, allow_pickle=False, **{name.replace("__", "/"): np.asarray(array) for name, array in arrays.items()}
    )
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zip", "cannot be read as predictions"),
        (packed(other=[1]), "expected an array index"),
        (packed(index="["), "its index is none"),
        (packed(index="[1]"), "its index is none"),
        (packed(index='{"sst2/dev": {"RUN": {"student-fp32": "1"}}}'), "its index is none"),
        (packed(index='{"sst2/dev": {"RUN": {"student-fp32": 1}}}'), "expected an array sst2/dev"),
        (packed(index='{"sst2/dev": {"RUN": {"student-fp32": 2}}}', sst2__dev=[[0, 1], [0, 1]]), "expected answers of student-fp32"),
        (packed(index='{"sst2/dev": {"RUN": {"student-fp32": 0}}}', sst2__dev=[[0, 1], [0, 1]]), "expected answers of student-fp32"),
        (packed(index='{"sst2/dev": {"RUN": {"student-fp32": 1}}}', sst2__dev=[[0, 1], [0, 7]]), "has other classes than the 2 of sst2"),
        (packed(index='{"sst2/dev": {"RUN": {"student-fp32": 1}}}', sst2__dev=[1, 1]), "not an answer for each gold label"),
    ],
)  # fmt: skip
def test_a_copy_that_cannot_be_right_is_told(fake: Make, tmp_path: Path, content: bytes, message: str) -> None:
    run = fake().model_copy(update={"run": "RUN"})
    (tmp_path / PER_EXAMPLE).write_bytes(content)
    with pytest.raises(CompressError, match=message) as caught:
        load_answers(find_predictions(run, [tmp_path]) or tmp_path, run, ["student-fp32"])
    assert str(tmp_path / PER_EXAMPLE) in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a__dev": [[1.0, 0.0]], "gold__dev": [0, 1]}, "a: not an answer for each gold label"),
        ({"a__dev": [1.0, 0.0], "gold__dev": [0, 1]}, "expected logits"),
        ({"a__dev": [[1.0], [0.0]], "gold__dev": [0, 1]}, "expected logits"),
        ({"a__dev": [[1.0, 0.0]] * 2, "gold__dev": [0, -1]}, "has other classes"),
    ],
)
def test_predictions_of_a_run_that_cannot_be_right_are_told(
    fake: Make, tmp_path: Path, arrays: dict, message: str
) -> None:
    (tmp_path / "predictions.npz").write_bytes(packed(**arrays))
    with pytest.raises(CompressError, match=message):
        load_answers(tmp_path / "predictions.npz", fake(), ["a"])


@pytest.mark.slow
def test_the_command_makes_the_page_of_a_folder_again(
    runs: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "report"
    write_report(runs, folder, folders=[tmp_path / "runs"])
    page = pages(folder)
    shutil.rmtree(tmp_path / "runs")
    (folder / "report.md").unlink()
    monkeypatch.setattr("compress.report._current", lambda files, digest: False)
    report([folder])
    assert pages(folder) == page
    for several in ([folder, folder], [folder / "results.json"], [tmp_path]):
        with pytest.raises(CompressError, match=r"--out: expected a folder for the report|holds no result"):
            report(several)
