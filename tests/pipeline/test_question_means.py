"""The mean of several teachers' logits at the tokens of a student's windows, and what a student learns from it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from question_worlds import make_question_world, question_request, reader, windows_of
from teacher_pairs import PAIR, plan

from compress.augment import read_augmented
from compress.losses.features import LOGITS
from compress.losses.spans import moved_logits
from compress.models.checkpoints.folders import load_tokenizer, pad_id
from compress.models.features.named import compute_features
from compress.pipeline import build_stage, run_all
from compress.store import Artifact
from compress.tasks import EncodedSpans, encode, load_reported, score, span_tables

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_question_world(tmp_path)
    return tmp_path


def said(folder: Path, windows: EncodedSpans, parts: Any = None) -> np.ndarray:
    """Return [token, 2] at the tokens of `windows`, one window at a time; `parts`: the windows in the teacher's own tokens."""
    model, rows = reader(folder), []
    for row in range(len(windows)):
        read = windows if parts is None else parts
        ids = torch.from_numpy(read.input_ids[row].astype(np.int64))[None]
        types = torch.from_numpy(read.token_type_ids[row].astype(np.int64))[None]
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": types}
        with torch.no_grad():
            logits = compute_features(model, batch, (LOGITS,))[LOGITS]
        if parts is not None:
            places = torch.from_numpy(parts.places[row].astype(np.int64))[None]
            logits = moved_logits(logits, places, len(windows.input_ids[row]))
        rows.append(logits[0].numpy())
    return np.concatenate(rows)


def compared(windows: EncodedSpans) -> list[np.ndarray]:
    """Return, for each window, which tokens are compared."""
    return [windows.targets(np.array([row]), length)["compared"][0] == 1 for row, length in enumerate(windows.lengths)]


def probabilities(table: np.ndarray, windows: EncodedSpans, temperature: float) -> np.ndarray:
    """Return [compared token, 2] of all windows, computed by torch in float64."""
    per_window = []
    for logits, kept in zip(np.split(table, windows.starts[1:-1]), compared(windows), strict=True):
        per_window.append(torch.softmax(torch.from_numpy(logits[kept]).double() / temperature, dim=0).numpy())
    return np.concatenate(per_window)


def kept_of(table: np.ndarray, windows: EncodedSpans) -> np.ndarray:
    return table[np.concatenate(compared(windows))]


def tables(ask: Any, name: str) -> tuple[Artifact, dict[str, np.ndarray]]:
    artifact = build_stage(ask, name)
    return artifact, {split: np.load(artifact.path / f"{split}.npy") for split in ("train", "tuning")}


def test_the_mean_of_two_tokenizers_is_that_of_their_calibrated_probabilities(world: Path) -> None:
    ask, pair = question_request(*PAIR), plan(*PAIR, task="asked.yaml")
    ensemble, temperatures, each = build_stage(ask, "ensemble"), [], []
    for split in ("train", "tuning"):
        windows, both = windows_of("tiny.yaml", split), []
        assert len(windows) > len(windows.contexts), "some contexts have several windows"
        for model in ("teacher", "teacher-2"):
            artifact, logged = tables(ask, f"{model}-logits")
            folder = build_stage(ask, model).path
            parts = None if model == "teacher" else pair.teachers[model].parts_of(windows, 24)
            own = said(folder, windows, parts)
            temperature = artifact.info["temperature"]
            if split == "tuning":
                assert temperature == pytest.approx(span_tables.fit_span_temperature(own, windows), rel=1e-4)
                temperatures.append(temperature)
            expected = probabilities(own, windows, temperature)
            np.testing.assert_allclose(np.exp(kept_of(logged[split], windows)), expected, rtol=1e-4, atol=1e-6)
            both.append(expected)
            assert artifact.info["examples"] == len(windows_of("tiny.yaml", "train"))
        each.append(np.mean(both, axis=0))
    train = np.load(ensemble.path / "logits.npy")
    np.testing.assert_allclose(np.exp(kept_of(train, windows_of("tiny.yaml", "train"))), each[0], rtol=1e-4, atol=1e-6)
    assert ensemble.info["teachers"] == 2 and len(set(temperatures)) == 2


def test_the_mean_is_decoded_and_decided_on_the_tuning_split(world: Path) -> None:
    """Its score is that of its best spans, with no answer where that is likelier by the threshold."""
    ask = question_request(*PAIR)
    ensemble, data = build_stage(ask, "ensemble"), plan(*PAIR, task="asked.yaml").task.data
    windows = windows_of("tiny.yaml", "tuning")
    logs = [tables(ask, f"{model}-logits")[1]["tuning"].astype(np.float64) for model in ("teacher", "teacher-2")]
    mean = np.logaddexp(*logs) - np.log(2)
    rows = [(np.array([row]), each[None]) for row, each in enumerate(np.split(mean, windows.starts[1:-1]))]
    outputs = windows.collected(rows)

    def points(threshold: float) -> float:
        metrics = score(data.spec, data.labels, windows.decided(outputs, threshold), windows.labels)
        return (metrics["exact_match"] + metrics["f1_span"]) / 2

    assert ensemble.info["tuning_score"] == pytest.approx(points(ensemble.info["null_score_diff_threshold"]))
    margins = outputs[:, 3] - outputs[:, 2]
    assert ensemble.info["tuning_score"] >= max(points(float(margin) + 1e-3) for margin in margins) - 1e-9


def test_one_teacher_by_two_folders_is_that_teacher(world: Path) -> None:
    shutil.copytree("words", "again")
    config = json.loads(Path("again/config.json").read_text())
    Path("again/config.json").write_text(json.dumps(config | {"note": "the same"}))
    ask = question_request("./words", "./again")
    (one, logged), (other, _) = (tables(ask, name) for name in ("teacher-logits", "teacher-2-logits"))
    assert one.key != other.key and one.info == other.info
    mean = np.load(build_stage(ask, "ensemble").path / "logits.npy")
    np.testing.assert_array_equal(mean, logged["train"])
    assert np.ptp(kept_of(mean, windows_of("./words", "train"))) > 1, "it prefers some tokens"


def test_a_student_with_other_tokens_learns_the_mean_at_its_own(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compress.pipeline.training import run as training

    losses = "distill.losses=[{name: soft_target}]"
    ask = question_request(
        "tiny.yaml", "./words", student="./bytes", overrides=("finetune.max_steps=2", "distill.max_steps=3", losses)
    )
    mean = np.load(build_stage(ask, "ensemble").path / "logits.npy")
    assert len(mean) == windows_of("./bytes", "train").lengths.sum()
    build_stage(ask, "teacher")
    monkeypatch.setattr(training, "teacher_features", lambda *_, **__: pytest.fail("a teacher was asked"))
    student = build_stage(ask, "student")
    first = json.loads((student.path / "log.jsonl").read_text().splitlines()[0])
    assert first["losses"]["soft_target"] > 0
    assert load_tokenizer(student.path).to_str() == load_tokenizer(Path("bytes")).to_str()
    assert pad_id(json.loads((student.path / "config.json").read_text())) == pad_id(
        json.loads(Path("bytes/config.json").read_text())
    )


@pytest.mark.slow
def test_copies_of_the_questions_are_answered_too(world: Path) -> None:
    overrides = ("intermediate.enabled=false", "general.enabled=false", "augment.copies=2", "finetune.max_steps=2")
    ask = question_request(*PAIR, recipe="tinybert", overrides=(*overrides, "prediction.max_steps=3"))
    copies, mean = build_stage(ask, "augmented"), np.load(build_stage(ask, "ensemble").path / "logits.npy")
    assert copies.info["examples"] > 0
    texts = read_augmented(copies.path)
    windows = windows_of("tiny.yaml", "train")
    added = encode(plan("tiny.yaml", task="asked.yaml").teacher.tokenizer, texts, 24)
    assert len(mean) == windows.lengths.sum() + added.lengths.sum()
    assert build_stage(ask, "prediction").info["steps"] == 3


@pytest.mark.slow
def test_results_have_the_mean_s_own_answers_to_what_is_reported(world: Path) -> None:
    """In the windows of the student, whose tokenizer is not the second teacher's, with the threshold from the tuning split."""
    (result,) = run_all(question_request(*PAIR, bench=None))
    ask, pair = question_request(*PAIR), plan(*PAIR, task="asked.yaml")
    data = load_reported(pair.task.spec, pair.task.folder, None)
    windows: Any = encode(pair.teacher.tokenizer, data.splits["dev"], 24)
    both = []
    for model in ("teacher", "teacher-2"):
        parts = None if model == "teacher" else pair.teachers[model].parts_of(windows, 24)
        own = said(build_stage(ask, model).path, windows, parts)
        both.append(probabilities(own, windows, build_stage(ask, f"{model}-logits").info["temperature"]))
    mean = np.zeros((int(windows.starts[-1]), 2))
    mean[np.concatenate(compared(windows))] = np.log(np.mean(both, axis=0))
    rows = [(np.array([row]), each[None]) for row, each in enumerate(np.split(mean, windows.starts[1:-1]))]
    threshold = build_stage(ask, "ensemble").info["null_score_diff_threshold"]
    expected = windows.decided(windows.collected(rows), threshold)
    with np.load(Path("runs", result.run, "predictions.npz")) as file:
        outputs = file["ensemble/dev"]
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)
    assert result.ensemble is not None and len(result.ensemble.teachers) == 2
    assert result.ensemble.scores["dev"]["exact_match"] == pytest.approx(100 * expected[:, 4].mean())
    assert result.ensemble.scores["dev"]["f1_span"] == pytest.approx(100 * expected[:, 5].mean())
    first, second = result.ensemble.teachers
    assert first.scores == result.models[0].scores and second.predictions == "teacher-2"
