"""Multiple choice, from the user's files to the answers of a shipped bundle."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_kinds import finished, own_files, shipped, write_teacher
from shipped_bundles import check_shipped
from transformers import AutoModelForMultipleChoice, AutoTokenizer

import compress
from compress.bundle import verify
from compress.errors import CompressError
from compress.pipeline import Request, plan_all
from compress.report.grouping.predictions import find_predictions, load_answers, write_answers
from compress.report.grouping.recorded_scores import Scored, metric_of
from compress.results import Result
from compress.runtime import Chooser, Chosen, Classifier, load
from compress.tasks import OwnFiles

pytestmark = pytest.mark.end_to_end

ENDS = ("music", "river", "town", "park")  # words in the vocabulary; the first marks the right ending
OTHERS = ("child", "quite", "still", "near", "small", "blue", "strange", "never", "once")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write four endings of three words for each context, in SWAG's columns."""
    place = tmp_path_factory.mktemp("swag")
    write_teacher(place, epochs=4)
    rng = np.random.default_rng(0)
    for split, count in (("train", 120), ("dev", 40)):
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(["sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"])
        for number in range(count):
            order = rng.permutation(4)
            endings = [" ".join([*rng.choice(OTHERS, 2), ENDS[n]]) for n in order]
            context = " ".join([*rng.choice(OTHERS, 3), "b" * (number % 7), "c" * (number // 7)]).strip()
            writer.writerow([context, "the", *endings, int(np.flatnonzero(order == 0)[0])])
        (place / f"{split}.csv").write_text(out.getvalue(), encoding="utf-8")
    return place


def options(folder: Path) -> dict[str, Any]:
    return own_files(folder, ".csv", max_length=32)


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    return finished(options(folder))


@pytest.fixture(scope="module")
def bundle(folder: Path, result: Result) -> Path:
    return shipped(folder, result)


@pytest.mark.slow
def test_a_bundle_is_served_timed_and_seen_to_be_damaged(bundle: Path, tmp_path: Path) -> None:
    check_shipped(bundle, tmp_path, ["logits"], [])


def test_the_right_ending_is_learnt(folder: Path, result: Result) -> None:
    assert result.task.kind == "choice" and result.task.metrics == ("accuracy",)
    assert result.settings["text"] == ["sent1", "sent2", "ending"]
    teacher, int8 = result.models
    with np.load(folder / "runs" / result.run / "predictions.npz") as file:
        scores, fp32, gold = file[f"{int8.predictions}/dev"], file[f"{teacher.predictions}/dev"], file["gold/dev"]
    assert scores.shape == (40, 4) and teacher.scores["dev"]["accuracy"] > 90
    assert int8.scores["dev"]["accuracy"] == pytest.approx(100 * float((scores.argmax(1) == gold).mean()), abs=0.01)
    fidelity = int8.fidelity
    assert fidelity is not None and fidelity.examples == 40
    assert fidelity.flips == int((scores.argmax(1) != fp32.argmax(1)).sum())
    confidence = np.exp(fp32).max(1) / np.exp(fp32).sum(1)
    assert fidelity.fp32_calibration_error == pytest.approx(100 * _gap(confidence, fp32.argmax(1) == gold), abs=1e-3)


def _gap(confidence: np.ndarray, right: np.ndarray) -> float:
    """Return the expected calibration error, in 15 bins."""
    place = np.ceil(confidence * 15).astype(int)
    return sum(abs((right[place == n] - confidence[place == n]).sum()) for n in set(place.tolist())) / len(right)


def test_a_report_keeps_what_its_scores_are_of(cli, folder: Path, result: Result, tmp_path: Path) -> None:
    runs = [folder / "runs"]
    write_answers([result], runs, tmp_path / "per_example.npz")
    (tmp_path / "results.json").write_text("{}")
    model = result.models[1]
    for places in (runs, [tmp_path]):
        file = find_predictions(result, places)
        assert file is not None
        (outputs,), gold = load_answers(file, result, [model.predictions])
        metric = metric_of([Scored(result, model, outputs, gold, file)])
        assert metric(outputs, gold) == pytest.approx(model.headline, abs=0.01)
    said = cli("report", folder / "runs" / result.run, "-o", tmp_path / "report")
    assert said.code == 0, said.err
    page = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "Accuracy" in page and "Flips" in page


def test_a_bundle_verifies_and_says_what_it_gives(bundle: Path) -> None:
    report = verify(bundle, simulate=True)
    assert report.passed, [check for check in report.checks if not check.passed]
    config = json.loads((bundle / "config.json").read_text())
    assert config["architectures"] == ["BertForMultipleChoice"] and "problem_type" not in config
    assert json.loads((bundle / "bundle.json").read_text())["text_columns"] == ["sent1", "sent2", "ending"]
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert (
        "pipeline_tag: multiple-choice" in card
        and "takes such rows, not the batches of questions" in card
        and "widget" not in card
    )


@pytest.mark.slow
def test_a_task_file_from_init_scores_a_bundle_again(
    cli, bundle: Path, folder: Path, result: Result, tmp_path: Path
) -> None:
    task = tmp_path / "swag.yaml"
    said = cli("init", "--train", folder / "train.csv", "--dev", folder / "dev.csv", "--max-length", 32, "-o", task)
    assert said.code == 0, said.err
    assert "kind: choice" in task.read_text() and "text: [sent1, sent2, ending]" in task.read_text()
    said = cli("verify", bundle, "--task", task)
    points = f"{result.final.scores['dev']['accuracy']:.2f}"
    assert said.code == 0 and f"accuracy {points} (recorded {points})" in said.out, said.out + said.err


def test_the_examples_of_the_card_run(bundle: Path) -> None:
    first, second, *_ = (bundle / "README.md").read_text(encoding="utf-8").split("```python\n")[1:]
    for example, begins in ((first, "ending "), (second, "[Chosen(")):
        done = subprocess.run(
            [sys.executable, "-c", example.split("```")[0]], cwd=bundle, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(begins)


ENDINGS = ["the once river", "the blue music", "the town"]


def test_probabilities_are_those_of_transformers(bundle: Path) -> None:
    model, tokenizer = AutoModelForMultipleChoice.from_pretrained(bundle).eval(), AutoTokenizer.from_pretrained(bundle)
    with torch.inference_mode():
        batch = tokenizer(["still near"] * 3, ENDINGS, return_tensors="pt", padding=True)
        expected = model(**{name: value[None] for name, value in batch.items()}).logits.softmax(-1)[0].numpy()
    chooser = Chooser(bundle, precision="fp32")
    choice = chooser.choose("still near", ENDINGS)
    assert (choice.place, choice.ending) == (int(expected.argmax()), ENDINGS[int(expected.argmax())])
    np.testing.assert_allclose(choice.probabilities, expected, rtol=1e-4, atol=1e-6)
    assert choice.probability == max(choice.probabilities)
    again = chooser.predict([("still near", ENDINGS), ("once", ENDINGS[:2])])
    assert again[0].place == choice.place and len(again[1].probabilities) == 2
    assert chooser.predict([]) == []


def test_of_equal_endings_the_first_given_is_chosen(bundle: Path) -> None:
    choice = Chooser(bundle, precision="fp32").choose("once", ["music", "music"], batch_size=1)
    assert (choice.place, choice.probabilities) == (0, (0.5, 0.5))


def test_a_stream_is_answered_up_to_a_mistake(bundle: Path) -> None:
    answers = load(bundle).choices([("a", ["b", "c"]), ("a", ["b", "d"]), ("a", "bc")])  # type: ignore[union-attr, list-item]
    assert isinstance(next(answers), Chosen) and isinstance(next(answers), Chosen)
    with pytest.raises(CompressError, match=r"questions\[2\]: endings: expected texts in a list, found str"):
        next(answers)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((3, ["a", "b"]), "context: expected a text, found int"),
        (("a", "bc"), "endings: expected texts in a list, found str"),
        (("a", ["b", None]), r"endings\[1\]: expected a text, found NoneType"),
        (("a", ["b"]), "endings: expected two or more to choose among, found 1"),
        (("a", ["x " * 60 + "y", "x " * 60 + "z"]), r"questions\[0\]: two endings of .* expected shorter ones"),
        (("a", ["b", "\ud800"]), r"endings\[1\]: expected Unicode text"),
    ],
)
def test_what_cannot_be_chosen_among(bundle: Path, arguments: tuple, said: str) -> None:
    with pytest.raises(CompressError, match=said):
        Chooser(bundle).choose(*arguments)


def test_a_folder_opens_as_what_its_class_says(bundle: Path, tmp_path: Path) -> None:
    """Also one without bundle.json, whose config has two labels, as transformers writes it."""
    assert isinstance(load(bundle), Chooser)
    for name in ("tokenizer.json", "tokenizer_config.json", "onnx/model.onnx"):
        (tmp_path / Path(name).name).write_bytes((bundle / name).read_bytes())
    config = json.loads((bundle / "config.json").read_text())
    config |= {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = load(tmp_path)
    assert isinstance(model, Chooser) and model.choose("once", ["music", "the town"]).place in (0, 1)
    with pytest.raises(
        CompressError, match=r"its model chooses among endings; open it with compress\.runtime\.Chooser"
    ):
        Classifier(bundle)


def test_predict_prints_the_ending(cli, bundle: Path) -> None:
    said = cli("predict", bundle, "still near", *(word for ending in ENDINGS for word in ("--pair", ending)))
    ending, probability = said.out.strip().split("\t")
    assert said.code == 0 and ending in ENDINGS and 1 / 3 < float(probability) <= 1
    said = cli("predict", bundle, "--json", "still near", "--pair", "the music", "--pair", "the town")
    answer = json.loads(said.out)
    assert answer["text"] == ["still near", ["the music", "the town"]]
    assert answer["ending"] == answer["text"][1][answer["place"]] and sum(answer["probabilities"]) == pytest.approx(1)
    said = cli("predict", bundle, "still near", "--pair", "the\nmusic\tof", "--pair", "the\r\ntown")
    assert said.out.split("\t")[0] in ("the music of", "the town"), "one line, two fields"
    for wrong in (("a",), ("a", "--pair", "b"), ("a", "b", "--pair", "c", "--pair", "d")):
        said = cli("predict", bundle, *wrong)
        assert said.code == 2 and "--pair: expected one text and at least two endings" in said.err


def test_predict_answers_and_scores_a_file(cli, bundle: Path, folder: Path, result: Result, tmp_path: Path) -> None:
    done = cli("predict", bundle, "--input", folder / "dev.csv", "--label", "label", "--output", tmp_path / "o.csv")
    assert done.code == 0, done.err
    assert "40 questions: accuracy " in done.err + done.out
    header, first, *_ = csv.reader((tmp_path / "o.csv").read_text(encoding="utf-8").splitlines())
    assert header[-2:] == ["prediction", "prediction_score"] and first[-2].startswith("the ")
    rows = tmp_path / "in.jsonl"
    rows.write_text(
        '{"c": "once", "e": ["the music", "the town"], "right": "A"}\n{"c": "x", "e": ["a", "b", "c"], "right": 2}\n'
    )
    done = cli("predict", bundle, "--input", rows, "--text", "c", "--pair", "e", "--label", "right")
    assert done.code == 0 and "2 questions: accuracy " in done.err
    for line in map(json.loads, done.out.splitlines()):
        assert line["prediction"] in line["e"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"c": "x", "e": ["a"], "right": 0}, "line 1: e: expected two endings or more to choose among, found 1"),
        (
            {"c": "x", "e": ["a", "b"], "right": 2},
            "right: expected the place of the right ending, from 0 to 1, found 2",
        ),
        ({"c": 4, "e": ["a", "b"], "right": 0}, "c: expected text, found int"),
        ({"e": ["a", "b"], "right": 0}, "no column 'c'; name one of 'e', 'right' with --text"),
        ({"c": "x", "right": 0}, "no column 'e'; name one of 'c', 'right' with --pair"),
    ],
)
def test_predict_refuses_rows_by_name(cli, bundle: Path, row: dict, said: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps(row) + "\n")
    done = cli("predict", bundle, "--input", tmp_path / "in.jsonl", "--text", "c", "--pair", "e", "--label", "right")
    assert done.code == 2 and said in done.err


def test_a_checkpoint_is_adopted_as_a_teacher(bundle: Path, folder: Path, tmp_path: Path) -> None:
    """Also as transformers writes it, with the names of two labels that it does not have."""
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((bundle / name).read_bytes())
    config = json.loads((bundle / "config.json").read_text())
    (tmp_path / "config.json").write_text(
        json.dumps({k: v for k, v in config.items() if k not in ("id2label", "label2id")})
    )
    arguments = options(folder) | {"teacher": str(tmp_path), "root": tmp_path / "runs"}
    own = OwnFiles(folder / "train.csv", folder / "dev.csv", max_length=32)
    (plan,) = plan_all(Request(("int8",), (), own=own, teacher=str(tmp_path), root=tmp_path / "runs"))
    assert plan.nodes[0].kind.name == "adopt"
    (run_result,) = compress.run("int8", overrides=["quantize.method=dynamic"], **arguments)  # type: ignore[arg-type]
    assert run_result.models[0].scores["dev"]["accuracy"] > 90
