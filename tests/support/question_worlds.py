"""Questions about contexts longer than a window, in a world of several teachers: requests, windows and readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from span_files import questions, squad, written
from teacher_pairs import make_world, plan, request

from compress.models.checkpoints.folders import load_classifier
from compress.pipeline import Request
from compress.tasks import EncodedSpans, encode

TASK = """\
name: asked
kind: span
text: [question, context]
label: answers
metrics: [exact_match, f1_span]
max_length: 24
files: {train: asked.json, dev: dev.json}
"""


def make_question_world(folder: Path) -> None:
    """Write several teachers and a task of questions, some of which have no answer."""
    make_world(folder)
    (folder / "asked.yaml").write_text(TASK)
    train, dev = (squad(questions(split, 12, impossible=True), version2=True) for split in ("train", "dev"))
    written(folder, train, dev)


def question_request(*teachers: str, **fields: Any) -> Request:
    return request(*teachers, task="asked.yaml", **fields)


def reader(folder: Path) -> Any:
    return load_classifier(folder, kind="span", labels=("start", "end"), trained=True).eval()


def windows_of(teacher: str, split: str, length: int = 24) -> EncodedSpans:
    """Return the windows in the tokens of `teacher`, which a student without a tokenizer shares."""
    alone = plan(teacher, task="asked.yaml")
    windows = encode(alone.teacher.tokenizer, getattr(alone.task.data, split), length)
    assert isinstance(windows, EncodedSpans)
    return windows
