"""ERNIE 2.0 and 3.0 (Sun et al. 2020, arXiv:1907.12412, §4.1; 2021, arXiv:2107.02137): a BERT that may add an embedding of the task type.

All texts here have task type 0, transformers' default, whatever the task.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .bert import BERT, KEPT
from .counts import Counts, Sizes, bert_embeddings
from .fields import FLAG, whole_number
from .parts import RandomWeights, Setting, Student

if TYPE_CHECKING:
    from ...tokenization.special import SpecialIds

_OF_TASKS = ("use_task_id", "task_type_vocab_size")


def _settings(teacher: Setting) -> dict[str, Any]:
    return {name: teacher(name) for name in (*KEPT, *_OF_TASKS)}


def _random_config(config: dict[str, Any], special: SpecialIds) -> dict[str, Any]:
    return config | {"use_task_id": True, "task_type_vocab_size": 3}


def _embeddings(sizes: Sizes) -> int:
    return bert_embeddings(sizes) + sizes.task_types * sizes.embedding


ERNIE = replace(
    BERT,
    name="ernie",
    title="ERNIE",
    fields={**BERT.fields, "use_task_id": FLAG, "task_type_vocab_size": whole_number(1, 1024)},
    counts=Counts(embeddings=_embeddings, own_sizes={"use_task_id": 0, "task_type_vocab_size": 3}),
    student_families=("ernie", "bert", "albert"),
    as_student=Student(inits=("copy", "prune", "project", "random"), settings=_settings),
    random=RandomWeights(config=_random_config),
)
