"""A stage may train on shorter texts, but chooses on the tuning split with the task's length."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_runs import TEACHER
from tokenizers import Tokenizer

from compress.pipeline import Request, plan_all
from compress.pipeline.plan import Context, Job, Listener
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.stages.registry import kind_of
from compress.tasks import Encoded

TASK = """\
name: tags
kind: multilabel
text: [text]
label: labels
metrics: [f1_micro]
max_length: 24
files: {train: train.csv, dev: dev.csv}
"""


def test_checkpoints_and_thresholds_are_chosen_at_the_length_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny.yaml").write_text(TEACHER)
    (tmp_path / "tags.yaml").write_text(TASK)
    for name, count in (("train", 40), ("dev", 8)):
        rows = [f"{name} {n} {'town river ' * 20},{('a', 'b', 'a|b')[n % 3]}" for n in range(count)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,labels", *rows]) + "\n")
    lengths: dict[str, set[int]] = {"train": set(), "tuning": set()}
    whole = TaskSource.encoded

    def encoded(task: TaskSource, split: str, tokenizer: Tokenizer, max_length: int) -> Encoded:
        lengths[split].add(max_length)
        return whole(task, split, tokenizer, max_length)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(TaskSource, "encoded", encoded)
    overrides = ("finetune.max_steps=1", "finetune.max_length=8")
    request = Request(("int8",), (str(tmp_path / "tags.yaml"),), str(tmp_path / "tiny.yaml"), overrides=overrides)
    (planned,) = plan_all(request)
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    work.mkdir()
    node = next(node for node in planned.nodes if node.kind.name == "finetune")
    info = kind_of(node).run(Job(planned, node, {}, Context(planned.task, "fp32", 1, Listener()), out, work))
    assert "threshold" in info or "thresholds" in info
    assert lengths == {"train": {8}, "tuning": {24}}
