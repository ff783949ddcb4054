"""Question answering: which teachers a student can learn from, and the cost of a student."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from teacher_pairs import make_world, plan

from compress.errors import CompressError
from compress.pipeline.estimate import estimate
from compress.tasks import encode

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
    question = "what is good" if path.stem == "train" else "what was good"
    qas = [
        {"id": str(number), "question": question, "answers": [{"text": "river", "answer_start": 6}]}
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
    """It learns from answers, whose positions are mapped to its tokens, but not from states at tokens."""
    assert not plan("tiny.yaml", task="asked.yaml", student="./bytes").shares_tokenizer
    message = refused("tiny.yaml", student="./bytes", recipe="distilbert", overrides=())
    assert "hidden_cosine compares states per token" in message and "choose recipe logits" in message


def test_several_teachers_answer_in_the_student_s_windows(world: Path) -> None:
    """Keys depend on the windows' tokenizer and length; states of several teachers cannot be compared."""

    def stage_keys(*teachers: str, **fields: Any) -> dict[str, str]:
        return plan(*teachers, task="asked.yaml", **fields).keys

    both = stage_keys("tiny.yaml", "./bytes")
    assert {"teacher-logits", "teacher-2-logits", "ensemble"} <= both.keys()
    assert stage_keys("tiny.yaml", "./bytes", student="distil-1l")["ensemble"] == both["ensemble"]
    other = stage_keys("tiny.yaml", "./bytes", student="./bytes")
    turned = stage_keys("./bytes", "tiny.yaml")  # a student without its own tokenizer uses the first teacher's
    assert other["teacher"] == both["teacher"]
    for name in ("teacher-logits", "teacher-2-logits", "ensemble"):
        assert other[name] != both[name]
    assert turned["ensemble"] == other["ensemble"]
    longer = stage_keys("tiny.yaml", "./bytes", overrides=("distill.max_length=20",))
    assert longer["ensemble-20"] != both["ensemble"]
    message = refused("tiny.yaml", "./words", recipe="distilbert", overrides=())
    assert "hidden_cosine compares states inside one teacher, and there are 2" in message


def test_long_contexts_count_as_their_windows(world: Path) -> None:
    """An epoch consists of windows, and the teacher predicts each once."""

    def work(epochs: int, *teachers: str) -> Any:
        settings = (f"distill.epochs={epochs}", "distill.max_steps=null", "distill.batch_size=4")
        run_plan = plan(*teachers, task="asked.yaml", overrides=settings)
        return next(each for each in estimate([run_plan], world / "runs", assume=True).work if each.stage == "distill")

    alone = plan("tiny.yaml", task="asked.yaml")
    questions = len(alone.task.data.train)
    one, two = work(1, "tiny.yaml"), work(2, "tiny.yaml")
    assert one.steps > 2 * -(-questions // 4) and two.steps == 2 * one.steps
    windows: Any = encode(alone.teacher.tokenizer, alone.task.data.train, 24)
    answers = len(windows) * alone.sizes["teacher"].flops_per_example(float(windows.lengths.mean()))
    assert 2 * one.flops - two.flops == pytest.approx(answers, rel=1e-6)
    both = plan("tiny.yaml", "./bytes", task="asked.yaml")
    read = both.teachers["teacher-2"].parts_of(windows, 24).lengths.mean()
    assert read > windows.lengths.mean()  # bytes need more tokens for a window's words
    added = work(2, "tiny.yaml", "./bytes").flops - two.flops
    assert added == pytest.approx(len(windows) * both.sizes["teacher-2"].flops_per_example(float(read)), rel=1e-6)
