"""Tagging, from a CoNLL file to the entities of a shipped bundle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from own_kinds import finished, own_files, shipped, write_teacher
from shipped_bundles import check_shipped
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

from compress.bundle import verify
from compress.report.grouping.predictions import find_predictions, load_answers, write_answers
from compress.report.grouping.recorded_scores import Scored, metric_of
from compress.results import Result
from compress.runtime import Tagger, load

pytestmark = pytest.mark.end_to_end

OTHERS = ("girl", "child", "quite", "still", "near", "small", "blue", "strange", "never", "once")
ENTITIES = {"ART": ["music"], "NATURE": ["river", "park"], "PLACE": ["town"]}  # words in the vocabulary
LABELS = ("O", "B-ART", "I-ART", "B-NATURE", "I-NATURE", "B-PLACE", "I-PLACE")


def sentence(rng: np.random.Generator) -> list[tuple[str, str]]:
    parts = [[(str(word), "O")] for word in rng.choice(OTHERS, size=5)]
    for kind, words in ENTITIES.items():
        if rng.random() < 0.5:
            parts.append([(word, f"{'I' if place else 'B'}-{kind}") for place, word in enumerate(words)])
    return [word for part in rng.permutation(np.arange(len(parts))) for word in parts[part]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("places")
    write_teacher(place, epochs=12)
    rng = np.random.default_rng(0)
    for split, count in (("train", 480), ("dev", 60)):
        texts = ("".join(f"{word}\t{tag}\n" for word, tag in sentence(rng)) for _ in range(count))
        (place / f"{split}.conll").write_text("\n".join(texts), encoding="utf-8")
    return place


def options(folder: Path) -> dict[str, Any]:
    return own_files(folder, ".conll", max_length=24)


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    return finished(options(folder))


@pytest.fixture(scope="module")
def bundle(folder: Path, result: Result) -> Path:
    return shipped(folder, result)


@pytest.mark.slow
def test_a_bundle_is_served_timed_and_seen_to_be_damaged(bundle: Path, tmp_path: Path) -> None:
    check_shipped(bundle, tmp_path, ["logits"], [])


def test_entities_are_learnt(result: Result) -> None:
    assert result.task.kind == "tagging" and result.task.labels == LABELS and result.task.metrics == ("entity_f1",)
    teacher, int8 = result.models
    assert teacher.scores["dev"]["entity_f1"] > 90 and int8.scores["dev"]["entity_f1"] > 90
    assert int8.fidelity is not None and int8.fidelity.flips is not None
    assert int8.fidelity.examples > 60 * 5  # words, not texts


def test_a_report_keeps_what_its_scores_are_of(folder: Path, result: Result, tmp_path: Path) -> None:
    """The copy has the tags and the starts of texts, because its intervals are over texts."""
    runs = [folder / "runs"]
    write_answers([result], runs, tmp_path / "per_example.npz")
    (tmp_path / "results.json").write_text("{}")
    model = result.models[1]
    golds = []
    for places in (runs, [tmp_path]):
        file = find_predictions(result, places)
        assert file is not None
        (outputs,), gold = load_answers(file, result, [model.predictions])
        metric = metric_of([Scored(result, model, outputs, gold, file)])
        assert metric(outputs, gold) == pytest.approx(model.headline, abs=0.01)
        golds.append(gold)
    assert np.array_equal(*golds)


def test_a_bundle_verifies_and_says_what_it_gives(bundle: Path) -> None:
    report = verify(bundle, simulate=True)
    assert report.passed, [check for check in report.checks if not check.passed]
    config = json.loads((bundle / "config.json").read_text())
    assert config["architectures"] == ["BertForTokenClassification"]
    assert config["id2label"] == dict(zip(map(str, range(7)), LABELS, strict=True))
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: token-classification" in card and "ORTModelForTokenClassification" in card
    (output,) = onnx.load(bundle / "onnx" / "model.onnx").graph.output
    assert [size.dim_param or size.dim_value for size in output.type.tensor_type.shape.dim] == ["batch", "length", 7]


def test_the_examples_of_the_card_run(bundle: Path) -> None:
    first, second, *_ = (bundle / "README.md").read_text(encoding="utf-8").split("```python\n")[1:]
    for example, expected in ((first, "[['"), (second, "[[")):
        done = subprocess.run(
            [sys.executable, "-c", example.split("```")[0]], cwd=bundle, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(expected)


def test_entities_are_those_of_transformers(bundle: Path) -> None:
    """The vocabulary's words are one token each, so both decide alike."""
    text = "still near river park, strange town once music"
    model = AutoModelForTokenClassification.from_pretrained(bundle).eval()
    tokenizer = AutoTokenizer.from_pretrained(bundle)
    expected = pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="first")(text)
    (entities,) = Tagger(bundle, precision="fp32").tag([text])
    spans = [(entity.label, entity.start, entity.end) for entity in entities]
    assert spans == [(each["entity_group"], each["start"], each["end"]) for each in expected]
    assert [entity.label for entity in entities] == ["NATURE", "PLACE", "ART"]


def test_a_long_text_is_read_in_windows(bundle: Path) -> None:
    """Of 24 tokens: one run over the whole text gives mostly the same decisions, as the model then sees further."""
    rng = np.random.default_rng(3)
    words = [word for _ in range(3) for word, _ in sentence(rng)]
    tagger = Tagger(bundle, precision="fp32")
    logits = tagger.logits([" ".join(words)])
    assert logits.shape == (len(words), len(LABELS))
    model = AutoModelForTokenClassification.from_pretrained(bundle).eval()
    tokenizer = AutoTokenizer.from_pretrained(bundle)
    with torch.inference_mode():
        whole = model(**tokenizer(" ".join(words), return_tensors="pt", max_length=64, truncation=True)).logits[0, 1:-1]
    assert (logits.argmax(1) == whole.numpy().argmax(1)).mean() > 0.8


def test_predict_prints_entities(cli, bundle: Path) -> None:
    said = cli("predict", bundle, "still near the river park", "small")
    assert said.code == 0 and "NATURE" in said.out and "river park" in said.out
    (line,) = cli("predict", bundle, "--json", "near the town").out.splitlines()
    assert "PLACE" in line and json.loads(line)


def test_predict_decides_words_as_it_is_asked(cli, bundle: Path, tmp_path: Path) -> None:
    text = "still near riverparks nearby the streets"
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text(json.dumps({"tokens": text}) + "\n", encoding="utf-8")
    answers = []
    for name in ("first", "average", "max", "none"):
        expected = [vars(each) for each in next(Tagger(bundle).tag(text, aggregation=name))]  # type: ignore[arg-type]
        for each in expected:
            each["score"] = round(each["score"], 6)
        said = cli("predict", bundle, "--json", "--aggregation", name, text)
        assert json.loads(said.out)["entities"] == expected
        assert cli("predict", bundle, "--aggregation", name, "--input", path, "--output", out).code == 0
        assert json.loads(out.read_text())["prediction"] == expected
        out.unlink()
        answers.append(expected)
    assert answers[0] != answers[1], "the other tokens must matter"


def test_predict_refuses_another_aggregation(cli, bundle: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text(json.dumps({"tokens": "near"}) + "\n", encoding="utf-8")
    for more in (("near",), ("--input", path, "--output", out)):
        said = cli("predict", bundle, "--aggregation", "simple", *more)
        assert said.code == 2
        assert "--aggregation: expected first, average, max or none, found 'simple'" in said.err
    assert not out.exists()


def test_the_right_class_opens_a_bundle(bundle: Path) -> None:
    assert isinstance(load(bundle), Tagger)
