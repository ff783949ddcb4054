"""Texts with any number of labels, from the user's files to the answers of a shipped bundle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from own_kinds import finished, own_files, shipped, write_teacher
from shipped_bundles import check_shipped
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from compress.bundle import verify
from compress.errors import CompressError
from compress.metrics import LabelsHeadline
from compress.pipeline import Request, plan_all
from compress.report.grouping.predictions import find_predictions, load_answers, write_answers
from compress.report.grouping.recorded_scores import Scored, metric_of
from compress.results import Result
from compress.runtime import Classifier, LabelsPrediction
from compress.tasks import OwnFiles, headline_of, load_training, own_task

pytestmark = pytest.mark.end_to_end

WORDS = {"art": "music", "nature": "river", "traffic": "vehicle"}  # words in the teacher's vocabulary
OTHERS = ("town", "park", "girl", "child", "quite", "still", "near", "small", "blue", "strange", "never", "once")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two files of texts about places, with the labels of their words."""
    place = tmp_path_factory.mktemp("reviews")
    write_teacher(place, epochs=15, positions=128)
    rng = np.random.default_rng(0)
    for split, count in (("train", 480), ("dev", 60)):
        rows = []
        for _ in range(count):
            labels = [name for name in WORDS if rng.random() < 0.4]
            words = [*rng.choice(OTHERS, size=4), *(WORDS[name] for name in labels)]
            rows.append({"review": " ".join(rng.permutation(words)), "about": labels})
        (place / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return place


def options(folder: Path) -> dict[str, Any]:
    return own_files(folder, ".jsonl", text="review", label="about")


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    return finished(options(folder))


@pytest.fixture(scope="module")
def bundle(folder: Path, result: Result) -> Path:
    return shipped(folder, result)


@pytest.mark.slow
def test_a_bundle_is_served_timed_and_seen_to_be_damaged(bundle: Path, tmp_path: Path) -> None:
    check_shipped(bundle, tmp_path, ["logits"], list(WORDS))


def test_labels_are_learnt(result: Result) -> None:
    assert result.task.kind == "multilabel" and result.task.labels == tuple(WORDS)
    teacher, int8 = result.models
    assert teacher.scores["dev"]["f1_micro"] > 90 and int8.scores["dev"]["f1_micro"] > 90
    assert int8.fidelity is not None and int8.fidelity.flips is not None


def test_a_report_keeps_what_its_scores_are_of(folder: Path, result: Result, tmp_path: Path) -> None:
    """Average precision needs outputs, not decisions; a report's copy has them too."""
    runs = [folder / "runs"]
    write_answers([result], runs, tmp_path / "per_example.npz")
    (tmp_path / "results.json").write_text("{}")
    model = result.models[0]
    for places in (runs, [tmp_path]):
        file = find_predictions(result, places)
        assert file is not None
        (outputs,), gold = load_answers(file, result, [model.predictions])
        metric = metric_of([Scored(result, model, outputs, gold, file)])
        assert metric(outputs, gold) == pytest.approx(model.headline, abs=0.01)
        ranked = LabelsHeadline(("mean_average_precision",))
        assert ranked(outputs, gold) > 95
        assert len(np.unique(outputs)) > 20


def test_a_bundle_verifies_and_says_what_it_gives(bundle: Path) -> None:
    report = verify(bundle)
    assert report.passed, [check for check in report.checks if not check.passed]
    config = json.loads((bundle / "config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    assert config["id2label"] == dict(zip("012", WORDS, strict=True))
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert "for row in logits > 0" in card and "F1 (micro)" in card
    assert onnx.load(bundle / "onnx" / "model.onnx").graph.output[0].name == "logits"


def test_answers_are_sigmoids_above_one_half_as_transformers_gives_them(bundle: Path) -> None:
    texts = ["the music near the vehicle", "the river", "small"]
    model = AutoModelForSequenceClassification.from_pretrained(bundle).eval()
    tokenizer = AutoTokenizer.from_pretrained(bundle)
    with torch.inference_mode():
        expected = torch.sigmoid(model(**tokenizer(texts, return_tensors="pt", padding=True)).logits).numpy()
    answers = Classifier(bundle, precision="fp32").predict(texts)
    assert [answer.labels for answer in answers if isinstance(answer, LabelsPrediction)][:2] in (
        [("art", "traffic"), ("nature",)],
        [("traffic", "art"), ("nature",)],
    )
    for answer, row in zip(answers, expected, strict=True):
        assert list(answer.scores.values()) == pytest.approx(row.tolist(), abs=1e-5)
        above = [answer.scores[name] for name in answer.labels]  # type: ignore[attr-defined]
        assert above == sorted((p for p in answer.scores.values() if p > 0.5), reverse=True)


def test_predict_prints_every_label_and_scores_a_file(cli, bundle: Path, folder: Path, tmp_path: Path) -> None:
    said = cli("predict", bundle, "the music near the vehicle", "small")
    first, second = said.out.splitlines()
    assert sorted(part.split()[0] for part in first.split(", ")) == ["art", "traffic"] and second == "-"
    (line,) = cli("predict", bundle, "--json", "the river").out.splitlines()
    assert json.loads(line)["labels"] == ["nature"] and json.loads(line)["label"] == "nature"
    done = cli("predict", bundle, "--input", folder / "dev.jsonl", "--label", "about", "--output", tmp_path / "o.csv")
    assert "60 texts: f1_micro" in done.out + done.err
    written = (tmp_path / "o.csv").read_text().splitlines()
    assert written[0] == "review,about,prediction" and written[1].endswith(']"')


def test_predict_scores_a_column_of_0_and_1_for_each_label(cli, bundle: Path, folder: Path, tmp_path: Path) -> None:
    """It scores them like lists, in any order of columns."""
    rows = [json.loads(line) for line in (folder / "dev.jsonl").read_text().splitlines()]
    lines = [",".join([row["review"], *(str(int(name in row["about"])) for name in WORDS)]) for row in rows]
    path, names = tmp_path / "in.csv", ",".join(reversed(list(WORDS)))
    path.write_text("\n".join([",".join(["review", *WORDS]), *lines]) + "\n")
    one, other = (
        cli("predict", bundle, "--input", file, "--label", label, "--output", tmp_path / f"{file.stem}-out.csv").out
        for file, label in ((folder / "dev.jsonl", "about"), (path, names))
    )
    assert one == other != ""
    for label, message in (("art,nature", "--label: expected the columns"), ("art,none", "no column 'none'")):
        said = cli("predict", bundle, "--input", path, "--label", label)
        assert said.code == 2 and message in said.err
    path.write_text(path.read_text().replace(",0,", ",no,", 1))
    said = cli("predict", bundle, "--input", path, "--label", names)
    assert said.code == 2 and "expected 0 or 1, found 'no'" in said.err


def test_predict_refuses_labels_that_are_no_list(cli, bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"review": "x", "about": 3}\n')
    said = cli("predict", bundle, "--input", path, "--label", "about")
    assert said.code == 2 and "about: expected a list of labels, found 3" in said.err


@pytest.fixture
def as_teacher(bundle: Path, folder: Path, tmp_path: Path) -> Iterator[Callable[..., Request]]:
    """Return a function that makes a request whose teacher is the shipped checkpoint with this `problem_type` in config.json."""

    def make(kind: str, label: str, problem: str | None, refit: bool = False) -> Request:
        teacher = tmp_path / "teacher"
        teacher.mkdir()
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            (teacher / name).write_bytes((bundle / name).read_bytes())
        config = json.loads((teacher / "config.json").read_text()) | {"problem_type": problem}
        (teacher / "config.json").write_text(json.dumps(config))
        for split in ("train", "dev"):
            rows = [json.loads(line) for line in (folder / f"{split}.jsonl").read_text().splitlines()]
            rows = [row | {"one": (*row["about"], "art")[0]} for row in rows]
            (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        own = OwnFiles(tmp_path / "train.jsonl", tmp_path / "dev.jsonl", "review", None, label, kind)  # type: ignore[arg-type]
        return Request(("int8",), (), own=own, teacher=str(teacher), root=tmp_path / "runs", refit=refit)

    yield make


@pytest.mark.parametrize(
    ("kind", "label", "problem", "words"),
    [
        ("classification", "one", "multi_label_classification", "whose labels are decided one by one"),
        ("multilabel", "about", "single_label_classification", "whose labels exclude each other"),
        ("multilabel", "about", None, "whose labels exclude each other"),
    ],
)
def test_a_head_that_decides_otherwise_is_refused_or_taken_on_purpose(
    as_teacher: Callable[..., Request], kind: str, label: str, problem: str | None, words: str
) -> None:
    request = as_teacher(kind, label, problem)
    with pytest.raises(CompressError, match=rf"BertForSequenceClassification {words}, with a head .* give --refit"):
        plan_all(request)
    (plan,) = plan_all(replace(request, refit=True))
    assert plan.nodes[0].kind.name == "finetune"


def test_a_head_of_the_kind_is_adopted(as_teacher: Callable[..., Request]) -> None:
    (plan,) = plan_all(as_teacher("multilabel", "about", "multi_label_classification"))
    assert plan.nodes[0].kind.name == "adopt"


def test_what_is_decided_at_another_threshold_is_moved_to_one_half(folder: Path, result: Result, bundle: Path) -> None:
    """The shipped checkpoint decides at 0, and no other common threshold is better on the tuning split."""
    (trained,) = (stage for stage in result.stages if stage.kind == "finetune teacher")
    chosen = trained.info.get("thresholds") or {"all": trained.info["threshold"]}
    assert all(0 < probability < 1 for probability in chosen.values())
    data = load_training(
        *own_task(OwnFiles(folder / "train.jsonl", folder / "dev.jsonl", "review", None, "about")), None
    )
    logits, gold = Classifier(bundle, precision="fp32").logits(data.tuning.texts[0]), data.tuning.labels
    headline = headline_of(data.spec, data.labels)
    assert headline(logits, gold) >= max(headline(logits - by, gold) for by in np.linspace(-6, 6, 49)) - 1e-9


def test_predict_refuses_to_decide_words(cli, bundle: Path) -> None:
    said = cli("predict", bundle, "--aggregation", "max", "x")
    assert said.code == 2 and f"--aggregation: {bundle} labels no words; leave --aggregation out" in said.err
