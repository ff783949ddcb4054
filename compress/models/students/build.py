"""Build a student and start it from its teacher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...spec.cards import StudentCard
from ..dimensions import Dimensions
from ..layers import copied_layers
from .activations import Sample
from .projection import project
from .table import STUDENTS

if TYPE_CHECKING:
    from torch import nn


def build_student(card: StudentCard, teacher: Any, sizes: Dimensions, sample: Sample | None = None) -> nn.Module:
    """A transformers classifier of `sizes` that starts from `teacher`, a classifier, as the card says.

    `sample`: padded batches (`input_ids`, `attention_mask`, `token_type_ids`, each [batch, length], arrays or
    tensors), read where `needs_sample` says so. What is not taken from the teacher is transformers' own
    random start, under the caller's torch seed; without a sample that is all of a projected student, which
    suits one whose body `load_body` will bring.
    """
    form = STUDENTS[card.architecture]
    student = _new(form.classifier, form.config(teacher.config, sizes))
    if card.init == "copy":
        _copy_body(card, student.base_model, teacher.base_model)
        student.load_state_dict(form.head(teacher.state_dict(), teacher.config.model_type), strict=False)
    elif card.init == "project" and sample is not None:
        project(student, teacher, _layers(card, teacher), sample)
    return student


def build_encoder(card: StudentCard, teacher: Any, sizes: Dimensions, sample: Sample | None = None) -> nn.Module:
    """As `build_student`, with neither head: `teacher` is an encoder (`AutoModel`), and so is the student."""
    form = STUDENTS[card.architecture]
    student = _new(form.encoder, form.config(teacher.config, sizes))
    if card.init == "copy":
        _copy_body(card, student, teacher)
    elif card.init == "project" and sample is not None:
        project(student, teacher, _layers(card, teacher), sample)
    return student


def _new(name: str, config: Any) -> Any:
    import transformers

    return getattr(transformers, name)(config)


def _copy_body(card: StudentCard, student: Any, teacher: Any) -> None:
    """Fill an encoder from its teacher's; the tensors are copied, never shared. Either may have no pooler."""
    family = teacher.config.model_type
    state = STUDENTS[card.architecture].body(teacher.state_dict(), family, _layers(card, teacher))
    wrong = [name for names in student.load_state_dict(state, strict=False) for name in names]
    if any(not name.startswith("pooler.") for name in wrong):
        raise RuntimeError(f"student {card.name}: {wrong} do not pass from a {family} to it")


def _layers(card: StudentCard, teacher: Any) -> tuple[int, ...]:
    return copied_layers(
        card.copy_layers,
        teacher_layers=teacher.config.num_hidden_layers,
        student_layers=card.layers,
        card=card.name,
    )
