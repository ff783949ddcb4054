"""Every recipe of the catalogue on question answering, for a few steps, through the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from pretrained_toys import encoder_folder
from recipe_runs import TEACHER, check_layers, compress, is_quantized, result_of
from shipped_bundles import check_shipped

from compress.bundle import read_bundle
from compress.catalog import names
from compress.graphs.model_files import get_metadata
from compress.results import Result
from compress.runtime import Reader, load

pytestmark = pytest.mark.end_to_end

RECIPES = [name for name in names("recipes") if name != "static"]  # its student has no layer where texts interact
TASK = """\
name: train2
kind: span
text: [question, context]
label: answers
metrics: [exact_match, f1_span]
max_length: 24
files: {train: train2.json, dev: dev2.json}
"""
WORDS = ("good", "small", "river", "music", "town", "food", "people", "water")


def squad(split: str, count: int, *, unanswerable: bool) -> str:
    """Return a SQuAD document of `count` contexts, some longer than a window of 24 tokens, with two questions each."""
    paragraphs = []
    for number in range(count):
        words = [f"{split}{number}", *(WORDS[(number + place) % len(WORDS)] for place in range(6 + 5 * (number % 5)))]
        context, questions = " ".join(words), []
        for place in (2, len(words) - 2):
            answer = " ".join(words[place : place + 1 + number % 2])
            start = len(" ".join(words[:place])) + 1
            none = unanswerable and place == 2 and number % 3 == 0
            questions.append({
                "id": f"{split}-{number}-{place}",
                "question": f"which word comes after {words[place - 1]}",
                "answers": [] if none else [{"text": answer, "answer_start": start}],
                **({"is_impossible": none} if unanswerable else {}),
            })  # fmt: skip
        paragraphs.append({"context": context, "qas": questions})
    return json.dumps({"version": "1.1", "data": [{"title": split, "paragraphs": paragraphs}]})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    for split, count in (("train", 60), ("dev", 20)):
        (folder / f"{split}.json").write_text(squad(split, count, unanswerable=False), encoding="utf-8")
        (folder / f"{split}2.json").write_text(squad(split, count, unanswerable=True), encoding="utf-8")
    return folder


def run(world: Path, recipe: str, *files: str) -> Result:
    goal = ("--set", "quantize.max_flips=100", "--set", "quantize.max_drop=100") if recipe.endswith("-auto") else ()
    text = ("--set", "pretrain.enabled=false") if recipe.endswith("-pretrain") else ()
    return result_of(
        *("run", recipe, *files, "--teacher", "tiny.yaml", "--threads", "1", "--no-bench", *goal, *text),
        *("--max-length", "24"),
        cwd=world,
    )


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_recipe_runs(world: Path, recipe: str) -> None:
    result = run(world, recipe, "--train", "train.json", "--dev", "dev.json")
    check_layers(result)
    assert result.task.kind == "span"
    assert set(result.final.scores["dev"]) == {"exact_match", "f1_span"}
    scores = result.final.scores["dev"]
    assert 0 <= scores["exact_match"] <= scores["f1_span"] <= 100
    fidelity = result.final.fidelity
    if is_quantized(result):
        assert fidelity is not None and fidelity.examples == 40 and fidelity.flips is not None
        exact = fidelity.exact_flips
        assert exact is not None and exact.lost + exact.gained <= fidelity.flips
        (fp32,) = (model for model in result.models if model.predictions == fidelity.reference)
        gain = scores["exact_match"] - fp32.scores["dev"]["exact_match"]
        assert (exact.gained - exact.lost) / 40 * 100 == pytest.approx(gain)
        assert result.final.info["int8_matmuls"] > 0


def test_a_bundle_of_questions_without_an_answer(world: Path) -> None:
    """From two files to an answer; the bundle records that there may be none."""
    result = run(world, "int8", "--train", "train2.json", "--dev", "dev2.json")
    assert result.task.data.rows["dev"] == 40 and result.task.unanswerable
    assert result.final.fidelity is not None
    assert compress("ship", Path("runs", result.run), "-o", "out", cwd=world).returncode == 0
    (world / "asked.yaml").write_text(TASK, encoding="utf-8")
    done = compress("verify", "out", "--task", "asked.yaml", "--threads", "1", cwd=world)
    assert done.returncode == 0, done.stdout + done.stderr
    reader = load(world / "out", threads=1)
    assert isinstance(reader, Reader) and reader.settings.impossible
    assert "no answer" in done.stdout, "verification compares what its files say of the threshold"
    threshold = json.loads((world / "out" / "config.json").read_text())["null_score_diff_threshold"]
    assert reader.settings.threshold == threshold == read_bundle(world / "out").null_score_diff_threshold
    for name in ("model.onnx", "model_quantized.onnx"):
        graph = onnx.load(world / "out" / "onnx" / name, load_external_data=False)
        assert float(get_metadata(graph)["null_score_diff_threshold"]) == threshold
    context = "small river music " * 40
    done = compress("predict", "out", "which word comes after small", "--pair", context, "--json", cwd=world)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["answer"] == context[answer["start"] : answer["end"]]
    report = (world / "runs" / result.run / "report.md").read_text()
    assert "Exact match" in report and "Answer F1" in report
    assert "whole contexts are drawn" in report


@pytest.mark.slow
def test_a_bundle_is_served_timed_and_seen_to_be_damaged(world: Path) -> None:
    result, bundle = run(world, "int8", "--train", "train.json", "--dev", "dev.json"), world / "served"
    assert compress("ship", Path("runs", result.run), "-o", bundle, cwd=world).returncode == 0
    check_shipped(bundle, world, ["start_logits", "end_logits"], [])


@pytest.mark.slow
def test_train_says_whether_there_may_be_no_answer(world: Path) -> None:
    """Also if dev has questions without one: scores are of the bundle's answers."""
    for train, impossible in (("train.json", False), ("train2.json", True)):
        result = run(world, "int8", "--train", train, "--dev", "dev2.json")
        out = world / f"mixed-{impossible}"
        assert compress("ship", Path("runs", result.run), "-o", out, cwd=world).returncode == 0
        reader = Reader(out, precision="fp32", threads=1)
        paragraphs = json.loads((world / "dev2.json").read_text())["data"][0]["paragraphs"]
        pairs = [(question["question"], each["context"]) for each in paragraphs for question in each["qas"]]
        with np.load(world / "runs" / result.run / "predictions.npz") as file:
            scored = file["teacher-fp32/dev"]
        assert reader.settings.impossible is impossible
        np.testing.assert_allclose(reader.outputs(pairs), scored[:, :4], atol=1e-4)
        assert impossible or (scored[:, 3] == -1e9).all()


@pytest.mark.slow
def test_a_report_keeps_what_each_question_was_answered(world: Path) -> None:
    """The report's folder renders the same page without the run."""
    result = run(world, "int8", "--train", "train.json", "--dev", "dev.json")
    done = compress("report", Path("runs", result.run), "-o", "kept", cwd=world)
    assert done.returncode == 0, done.stderr
    page = (world / "kept" / "report.md").read_text()
    shutil.copytree(world / "kept", world / "apart" / "kept")
    done = compress("report", Path("apart", "kept"), cwd=world)
    assert done.returncode == 0, done.stderr
    again = (world / "apart" / "kept" / "report.md").read_text()
    assert again.splitlines()[:-1] == page.splitlines()[:-1]
    assert "per_example.npz" in {path.name for path in (world / "kept").iterdir()}


@pytest.mark.slow
def test_a_student_with_another_tokenizer_learns_from_answers_moved_to_its_tokens(world: Path) -> None:
    encoder_folder(world / "bytes")
    steps = ("--set", "distill.max_steps=4", "--student", "./bytes")
    result = run(world, "logits", "--train", "train2.json", "--dev", "dev2.json", *steps)
    teacher, student, int8 = result.models
    assert (teacher.name, student.name, int8.precision) == ("teacher", "student", "int8")
    assert teacher.embedding_parameters != student.embedding_parameters and int8.fidelity is not None
    assert result.student_origin is not None


@pytest.mark.slow
def test_two_teachers_of_different_tokenizers_teach_their_mean(world: Path) -> None:
    """From the plan to the bundle: each teacher's scores, and those of their mean, computed in the student's windows."""
    encoder_folder(world / "second")
    options = ("--train", "train2.json", "--dev", "dev2.json", "--max-length", "24", "--student", "distil-1l")
    common = ("logits", *options, "--teacher", "tiny.yaml", "--teacher", "./second", "--set", "distill.max_steps=4")
    planned = compress("plan", *common, "--json", cwd=world)
    assert planned.returncode == 0, planned.stderr
    stages = [stage["stage"] for stage in json.loads(planned.stdout)[0]["stages"]]
    assert {"teacher_logits teacher-logits", "teacher_logits teacher-2-logits", "ensemble"} <= set(stages)
    result = result_of("run", *common, "--threads", "1", "--no-bench", cwd=world)
    assert result.ensemble is not None and result.teachers == "tiny + second"
    with np.load(world / "runs" / result.run / "predictions.npz") as file:
        outputs, baseline = file["ensemble/dev"], file["teacher-fp32/dev"]
    assert outputs.shape == baseline.shape == (40, 6)
    assert result.ensemble.scores["dev"]["exact_match"] == pytest.approx(100 * outputs[:, 4].mean())
    assert all(teacher.temperature is not None for teacher in result.ensemble.teachers)
    page = (world / "runs" / result.run / "report.md").read_text()
    assert (
        f"| the teachers' mean | 0 | – | {result.ensemble.tuning_score:.2f} | {result.ensemble.headline:.2f} |" in page
    )
    assert compress("ship", Path("runs", result.run), "-o", "both", cwd=world).returncode == 0
    card = (world / "both" / "README.md").read_text()
    assert "Made from `tiny` and `second` by the recipe `logits`" in card and "| the teachers' mean |" in card
    done = compress("verify", "both", cwd=world)
    assert done.returncode == 0, done.stdout + done.stderr
    again = result_of("run", *common, "--threads", "1", "--no-bench", cwd=world)
    assert again == result
