"""Average number of tokens in the texts of a plan's stages, estimated on a sample of train."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..spec.kinds import KINDS
from ..spec.stages import OnText
from ..tasks import Split, encode
from .plan import Node, Plan
from .plan.teachers import TeacherSource
from .training.text import text_length

_SAMPLE = 512  # sampled texts of train


def windows_per_example(plan: Plan, node: Node[Any]) -> float:
    """Average number of batch rows per example: 1, except where long texts are read in windows, or pairs one by one."""
    if KINDS[plan.task.spec.kind].unit == "text":
        return 1.0
    sample, most = _sample_of(plan), node.spec.max_length or plan.task.spec.max_length
    return len(encode(plan.source_of(node).tokenizer, sample, most)) / len(sample)


def stage_length(plan: Plan, node: Node[Any]) -> float:
    """Average number of tokens per example."""
    most = node.spec.max_length or plan.task.spec.max_length
    if isinstance(node.spec, OnText):
        return text_length(plan, node)
    return mean_length(plan, most, plan.source_of(node))


def teacher_length(plan: Plan, node: Node[Any], length: float) -> float:
    """As `stage_length`, in the teacher's own tokens if its tokenizer differs from the student's."""
    return length if plan.shares_tokenizer else read_length(plan, node, plan.teacher)


def read_length(plan: Plan, node: Node[Any], teacher: TeacherSource) -> float:
    """Average number of tokens that a teacher reads per example; for a question, of what the student's window shows."""
    most, student = node.spec.max_length or plan.task.spec.max_length, plan.source_of(node)
    if KINDS[plan.task.spec.kind].unit != "question" or teacher.shares_tokenizer(student):
        return mean_length(plan, most, teacher)
    windows: Any = encode(student.tokenizer, _sample_of(plan), most)
    return float(teacher.parts_of(windows, most).lengths.mean())


def mean_length(plan: Plan, most: int | None = None, source: TeacherSource | None = None) -> float:
    """Average number of tokens of a text of train, cut to `most` tokens (default: the task's), by the tokenizer of `source` (default: the
    teacher)."""
    sample, most = _sample_of(plan), most or plan.task.spec.max_length
    return float(encode((source or plan.teacher).tokenizer, sample, most).lengths.mean())


def _sample_of(plan: Plan) -> Split:
    train = plan.task.data.train
    return train.select(np.unique(np.linspace(0, len(train) - 1, _SAMPLE).astype(int)))
