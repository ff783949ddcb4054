"""How many tokens the texts of a plan's stages have on average, by a sample of train."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..spec.kinds import KINDS
from ..spec.stages import OnText
from ..tasks import Split, encode
from .plan import Node, Plan
from .plan.teachers import TeacherSource
from .training.text import text_length

_SAMPLE = 512  # texts of train whose lengths stand for all


def windows_per_example(plan: Plan, node: Node[Any]) -> float:
    """Rows of an example in a batch, on average: 1, but where long texts are read in windows, or pairs one by one."""
    if KINDS[plan.task.spec.kind].unit == "text":
        return 1.0
    sample, most = _sample_of(plan), node.spec.max_length or plan.task.spec.max_length
    return len(encode(plan.source_of(node).tokenizer, sample, most)) / len(sample)


def stage_length(plan: Plan, node: Node[Any]) -> float:
    """Tokens of an example, on average."""
    most = node.spec.max_length or plan.task.spec.max_length
    if isinstance(node.spec, OnText):
        return text_length(plan, node)
    return mean_length(plan, most, plan.source_of(node))


def teacher_length(plan: Plan, node: Node[Any], length: float) -> float:
    """As `stage_length`, in the teacher's own tokens where the student's are others."""
    return length if plan.shares_tokenizer else read_length(plan, node, plan.teacher)


def read_length(plan: Plan, node: Node[Any], teacher: TeacherSource) -> float:
    """Tokens that a teacher reads of an example, on average: of a question what the student's window shows."""
    most, student = node.spec.max_length or plan.task.spec.max_length, plan.source_of(node)
    if KINDS[plan.task.spec.kind].unit != "question" or teacher.shares_tokenizer(student):
        return mean_length(plan, most, teacher)
    windows: Any = encode(student.tokenizer, _sample_of(plan), most)
    return float(teacher.parts_of(windows, most).lengths.mean())


def mean_length(plan: Plan, most: int | None = None, source: TeacherSource | None = None) -> float:
    """Tokens of a text of train, which is cut to `most` tokens (default: the task's), on average; by the tokenizer of `source`
    (default: the teacher)."""
    sample, most = _sample_of(plan), most or plan.task.spec.max_length
    return float(encode((source or plan.teacher).tokenizer, sample, most).lengths.mean())


def _sample_of(plan: Plan) -> Split:
    train = plan.task.data.train
    return train.select(np.unique(np.linspace(0, len(train) - 1, _SAMPLE).astype(int)))
