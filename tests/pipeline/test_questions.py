"""Questions about texts: who can teach whom, and what a student costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from teacher_pairs import make_world, plan

from compress.errors import CompressError
from compress.pipeline.estimate import estimate

TASK = """\
name: asked
kind: span
text: [question, context]
label: answers
metrics: [exact_match, f1_span]
max_length: 24
files: {train: train.json, dev: dev.json}
"""


def _file(path: Path, count: int) -> None:
    qas = [
        {"id": str(number), "question": "what is good", "answers": [{"text": "river", "answer_start": 6}]}
        for number in range(count)
    ]
    paragraphs = [{"context": f"small river {number} " + "town " * 40, "qas": [qas[number]]} for number in range(count)]
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": path.stem, "paragraphs": paragraphs}]}))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_world(tmp_path)
    (tmp_path / "asked.yaml").write_text(TASK)
    _file(tmp_path / "train.json", 40)
    _file(tmp_path / "dev.json", 8)
    return tmp_path


def refused(*teachers: str, **fields: Any) -> str:
    with pytest.raises(CompressError) as caught:
        plan(*teachers, task="asked.yaml", **fields)
    return str(caught.value)


def test_a_student_with_another_tokenizer(world: Path) -> None:
    """Learns answers, whose places are moved to its tokens, and nothing of states at tokens."""
    assert not plan("tiny.yaml", task="asked.yaml", student="./bytes").shares_tokenizer
    told = refused("tiny.yaml", student="./bytes", recipe="distilbert", overrides=())
    assert "hidden_cosine compares states at tokens" in told and "choose recipe logits" in told


def test_several_teachers(world: Path) -> None:
    assert "have no mean of several teachers" in refused("tiny.yaml", "./bytes")


def test_long_contexts_count_as_their_windows(world: Path) -> None:
    """An epoch is of windows, and the teacher answers each in every epoch: no table of answers has its tokens."""

    def work(epochs: int) -> Any:
        settings = (f"distill.epochs={epochs}", "distill.max_steps=null", "distill.batch_size=4")
        found = plan("tiny.yaml", task="asked.yaml", overrides=settings)
        return next(each for each in estimate([found], world / "runs", assume=True).work if each.stage == "distill")

    questions = len(plan("tiny.yaml", task="asked.yaml").task.data.train)
    one, two = work(1), work(2)
    assert one.steps > 2 * -(-questions // 4) and two.steps == 2 * one.steps
    assert two.flops == pytest.approx(2 * one.flops)
