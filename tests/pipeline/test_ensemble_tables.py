"""The contents of the table of several teachers, and how it is made."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from teacher_pairs import make_world, plan, request

from compress.models.checkpoints.folders import load_classifier, load_tokenizer, pad_id
from compress.models.features.predict import predict_logits
from compress.pipeline import build_stage
from compress.pipeline.stages import teacher_logits
from compress.store import Artifact
from compress.tasks import encode

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_world(tmp_path)
    return tmp_path


def table(artifact: Artifact) -> np.ndarray:
    return np.load(artifact.path / "logits.npy")


def test_the_table_is_the_mean_of_what_two_teachers_of_different_tokenizers_say(world: Path):
    ask = request("tiny.yaml", "./bytes")
    ensemble = build_stage(ask, "ensemble")
    pair = plan("tiny.yaml", "./bytes")
    texts, probabilities = pair.task.data.train, []
    for name in ("teacher", "teacher-2"):
        info, folder = build_stage(ask, f"{name}-logits").info, build_stage(ask, name).path
        model: Any = load_classifier(folder, kind="classification", labels=("negative", "positive"), trained=True)
        tokenizer = load_tokenizer(folder)
        logits = predict_logits(model, encode(tokenizer, texts, 24), pad_id(model.config.to_dict()))
        scaled = torch.from_numpy(logits).double() / info["temperature"]
        probabilities.append(torch.softmax(scaled, dim=1).numpy())
        assert info["examples"] == 108
    assert load_tokenizer(build_stage(ask, "teacher").path).to_str() != tokenizer.to_str()
    expected = np.log(np.mean(probabilities, axis=0))
    assert table(ensemble).dtype == np.float32
    np.testing.assert_allclose(table(ensemble), expected, rtol=0, atol=1e-6)  # rounded to fp32 once
    assert ensemble.info["teachers"] == 2


def test_one_teacher_by_two_folders_is_that_teacher_calibrated(world: Path):
    """The two differ in a meaningless line of their config, and so in their keys."""
    shutil.copytree("words", "again")
    config = json.loads(Path("again/config.json").read_text())
    Path("again/config.json").write_text(json.dumps(config | {"note": "the same"}))
    ask = request("./words", "./again")
    both = [build_stage(ask, name) for name in ("teacher-logits", "teacher-2-logits")]
    assert both[0].key != both[1].key
    assert both[0].info == both[1].info
    with np.load(both[0].path / "logits.npz") as file:
        calibrated = log_softmax(file["train"].astype(np.float64) / both[0].info["temperature"], axis=1)
    np.testing.assert_array_equal(table(build_stage(ask, "ensemble")), calibrated.astype(np.float32))


def test_of_a_regression_it_is_the_mean_score(world: Path):
    ask = request("tiny.yaml", "./bytes", task="scores.yaml")
    ensemble, scores = build_stage(ask, "ensemble"), []
    for name in ("teacher-logits", "teacher-2-logits"):
        artifact = build_stage(ask, name)
        assert artifact.info["temperature"] is None
        with np.load(artifact.path / "logits.npz") as file:
            scores.append(file["train"].astype(np.float64))
    np.testing.assert_array_equal(table(ensemble), np.mean(scores, axis=0).astype(np.float32))
    assert table(ensemble).shape == (108, 1)


def test_the_student_learns_the_table_and_asks_no_teacher(world: Path, monkeypatch: pytest.MonkeyPatch):
    from compress.pipeline.training import run as training

    ask = request("tiny.yaml", "./bytes", overrides=("finetune.max_steps=2", "distill.max_steps=3"))
    ensemble, seen, original = build_stage(ask, "ensemble"), [], training.from_table
    build_stage(ask, "teacher")
    monkeypatch.setattr(training, "from_table", lambda logits, *rest: seen.append(logits) or original(logits, *rest))
    monkeypatch.setattr(training, "teacher_features", lambda *_, **__: pytest.fail("a teacher was asked"))
    build_stage(ask, "student")
    (answers,) = seen
    np.testing.assert_array_equal(answers, table(ensemble))


def test_copies_of_the_examples_are_answered_too(world: Path):
    overrides = ("intermediate.enabled=false", "general.enabled=false", "augment.copies=2", "finetune.max_steps=2")
    ask = request("tiny.yaml", "./bytes", recipe="tinybert", overrides=overrides)
    copies, ensemble = build_stage(ask, "augmented"), build_stage(ask, "ensemble")
    assert copies.info["examples"] > 0
    assert len(table(ensemble)) == 108 + copies.info["examples"]


@pytest.mark.slow
def test_after_a_kill_between_teachers_what_is_there_is_kept(world: Path, monkeypatch: pytest.MonkeyPatch):
    """The second teacher's table fails once; the first one's is not made again."""
    folders: list[str] = []
    original, killed = teacher_logits.load_tokenizer, [False]

    def load(folder: Path) -> Any:
        folders.append(folder.name)
        if len(folders) == 2 and not killed[0]:
            killed[0] = True
            raise KeyboardInterrupt
        return original(folder)

    monkeypatch.setattr(teacher_logits, "load_tokenizer", load)
    ask = request("tiny.yaml", "./bytes")
    with pytest.raises(KeyboardInterrupt):
        build_stage(ask, "ensemble")
    first, second = folders
    ensemble = build_stage(ask, "ensemble")
    assert folders == [first, second, second]
    monkeypatch.undo()
    monkeypatch.chdir(world)
    whole = build_stage(replace(ask, root=Path("apart")), "ensemble")
    np.testing.assert_array_equal(table(ensemble), table(whole))
