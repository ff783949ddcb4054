"""One teacher's logits at the tokens of a student's windows: a table equals its forward passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from default_suite import slow
from listeners import StopError, Stopping
from question_worlds import make_question_world, question_request, reader, windows_of
from teacher_pairs import plan

from compress.losses.features import LOGITS
from compress.losses.soft_target import SoftTarget
from compress.losses.spans import span_kl_loss
from compress.models.features.predict import to_tensors
from compress.objective import Objective
from compress.pipeline import build_stage
from compress.pipeline.training import teacher_targets
from compress.spec.stages import Training
from compress.tasks import TaskBatches


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_question_world(tmp_path)
    return tmp_path


@pytest.mark.parametrize("tokens", ["another's", *slow("its teacher's")])
def test_a_table_of_one_teacher_teaches_what_its_forwards_do(
    world: Path, monkeypatch: pytest.MonkeyPatch, tokens: str
) -> None:
    """For batches and their parts; a resumed training reads the stored table."""
    teacher = reader(build_stage(question_request("tiny.yaml"), "teacher").path)
    source = plan("tiny.yaml", task="asked.yaml").teacher
    windows = windows_of("tiny.yaml" if tokens == "its teacher's" else "./bytes", "train")
    data = TaskBatches(windows, batch_size=8, pad_id=0, seed=3)
    reads = None
    if tokens == "another's":
        reads = TaskBatches(source.parts_of(windows, 24), batch_size=8, pad_id=0, seed=3)
    objective, accelerator = Objective((SoftTarget(),), kind="span"), Accelerator(cpu=True)
    shown = Mock()

    def features(settings: Training) -> Any:
        return teacher_targets.teacher_features(
            teacher, objective, data, settings, world, accelerator, reads=reads, on_progress=shown
        )

    forward = features(Training(epochs=1, max_steps=len(data) - 1))
    assert not (world / "teacher-logits.npy").exists()
    assert not shown.called
    table = features(Training(epochs=1, max_steps=len(data)))
    count = len(windows if reads is None else reads.encoded)
    done = [each.args[0] for each in shown.mock_calls]
    assert shown.call_args.args == (count, count) and done == sorted(done)
    monkeypatch.setattr(teacher_targets, "put_token_logits", lambda *_, **__: pytest.fail("a teacher was asked again"))
    again, losses = features(Training(epochs=1)), []
    for step in range(len(data)):
        for rows in (data.indices(step), data.indices(step)[:3]):
            batch = to_tensors(data.collate(rows), torch.device("cpu"))
            logits, expected = (each(batch, rows)[LOGITS] for each in (table, forward))
            assert logits.shape == expected.shape and torch.equal(logits, again(batch, rows)[LOGITS])
            student = torch.from_numpy(np.random.default_rng(step).standard_normal(logits.shape)).float()
            both = [span_kl_loss(student, each, batch["compared"], temperature=2.0) for each in (logits, expected)]
            torch.testing.assert_close(both[0], both[1], rtol=1e-5, atol=1e-6)  # fp32, with different padding
            losses.append(float(both[0]))
    assert min(losses) > 0.01


def test_a_table_of_other_windows_is_refused(world: Path) -> None:
    windows = windows_of("tiny.yaml", "train")
    with pytest.raises(RuntimeError, match="is not of windows"):
        teacher_targets.from_table(np.zeros((3, 2), np.float32), windows, Accelerator(cpu=True))


@pytest.mark.slow
def test_an_interrupted_student_goes_on_with_the_same_table(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, original = list[int](), teacher_targets.put_token_logits

    def put(table: np.ndarray, *rest: Any, **named: Any) -> None:
        counts.append(len(table))
        original(table, *rest, **named)

    monkeypatch.setattr(teacher_targets, "put_token_logits", put)
    settings = (
        "finetune.max_steps=2",
        "distill.epochs=2",
        "distill.max_steps=null",
        "distill.batch_size=4",
        "distill.losses=[{name: soft_target}]",
    )
    whole = build_stage(question_request("tiny.yaml", overrides=settings, root=Path("whole")), "student")
    parts = question_request("tiny.yaml", overrides=settings, root=Path("parts"), checkpoint_seconds=-1)
    build_stage(parts, "teacher")
    steps = whole.info["steps"]
    with pytest.raises(StopError):
        build_stage(parts, "student", Stopping(steps // 2))
    left = Stopping(-1)
    again = build_stage(parts, "student", left)
    assert left.seen == list(range(steps // 2, steps + 1)) and steps > 4
    weights = [(each.path / "model.safetensors").read_bytes() for each in (whole, again)]
    assert weights[0] == weights[1]
    assert counts == [windows_of("tiny.yaml", "train").lengths.sum()] * 2, "once in each of both"
