"""A checkpoint that changes while a command runs is not stored as the one that was planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pretrained_toys import ALIKE, encoder_folder
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Listener, Request, run_all
from compress.pipeline.stages import adopt, finetune
from compress.pipeline.training import initial_student

CHANGED = r"{}: it changed since this command started; start it again"
STEPS = ("finetune.max_steps=1",)


def alter(folder: Path) -> None:
    """Change only the tokenizer's file, whose hash is part of the checkpoint's identity."""
    path = folder / "tokenizer.json"
    path.write_text(path.read_text() + " ")


def altering(load: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """Return `load`, after which the checkpoint changes."""

    def loaded(*arguments: Any, **named: Any) -> Any:
        model = load(*arguments, **named)
        alter(folder)
        return model

    return loaded


def stored(root: Path) -> list[str]:
    return [path.name for path in (root / ".store").iterdir() if not path.name.startswith(".")]


@pytest.fixture
def encoder(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Request:
    """Return a request to fine-tune `teacher` on `task.yaml`."""
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    task, root = (str(tmp_path / "task.yaml"),), tmp_path / "runs"
    return Request(("int8",), task, teacher=str(teacher), root=root, overrides=STEPS, threads=1, bench=None)


def test_of_a_teacher_that_is_fine_tuned(encoder: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(str(encoder.teacher))
    monkeypatch.setattr(finetune, "load_classifier", altering(finetune.load_classifier, folder))
    with pytest.raises(CompressError, match=CHANGED.format(folder)):
        run_all(encoder)
    assert stored(encoder.root) == []


def test_of_a_teacher_that_changed_before_its_stage_began(encoder: Request) -> None:
    folder = Path(str(encoder.teacher))

    class Late(Listener):
        def stage(self, label: str, cached: bool) -> None:
            if label == "finetune teacher":
                alter(folder)

    with pytest.raises(CompressError, match=CHANGED.format(folder)):
        run_all(encoder, Late())
    assert stored(encoder.root) == []


def test_of_a_teacher_that_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "teacher"
    folder.mkdir()
    encoder_folder(folder, "bert")
    (tmp_path / "embedding.yaml").write_text(ALIKE.format(kind="embedding"))
    monkeypatch.setattr(adopt, "load_classifier", altering(adopt.load_classifier, folder))
    task, root = (str(tmp_path / "embedding.yaml"),), tmp_path / "runs"
    with pytest.raises(CompressError, match=CHANGED.format(folder)):
        run_all(Request(("int8",), task, teacher=str(folder), root=root, threads=1, bench=None))
    assert stored(root) == []


def test_of_a_student(encoder: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "student"
    folder.mkdir()
    encoder_folder(folder, "bert")
    monkeypatch.setattr(initial_student, "load_classifier", altering(initial_student.load_classifier, folder))
    overrides = (*STEPS, "distill.max_steps=1")
    request = Request(
        ("logits",), encoder.tasks, teacher=encoder.teacher, student=str(folder), root=encoder.root, overrides=overrides,
        threads=1, bench=None,
    )  # fmt: skip
    with pytest.raises(CompressError, match=CHANGED.format(folder)):
        run_all(request)
