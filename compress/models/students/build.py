"""Build a student and start it from its teacher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...spec.cards import StudentCard
from ..dimensions import Dimensions
from ..layers import copied_layers
from .activations import Sample
from .conversion import convert
from .projection import project
from .table import STUDENTS

if TYPE_CHECKING:
    from torch import nn


def build_student(card: StudentCard, teacher: Any, sizes: Dimensions, sample: Sample | None = None) -> nn.Module:
    """A transformers classifier of `sizes` that starts from `teacher`, a classifier, as the card says.

    `sample`: padded batches (`input_ids`, `attention_mask`, `token_type_ids`, each [batch, length], arrays or
    tensors) of as many tokens as `sample_tokens` says. What is not taken from the teacher is transformers' own
    random start, under the caller's torch seed; without a sample that is all of a projected student, and all but
    the head of a converted one, which suits one whose body `load_body` will bring.
    """
    from transformers import AutoModelForSequenceClassification

    form = STUDENTS[card.architecture]
    student = AutoModelForSequenceClassification.from_config(form.config(teacher.config, sizes))
    _start(card, student, teacher, sample)
    if card.init == "copy" and form.head is not None:
        student.load_state_dict(form.head(teacher.state_dict(), teacher.config.model_type), strict=False)
    return student


def build_encoder(card: StudentCard, teacher: Any, sizes: Dimensions, sample: Sample | None = None) -> nn.Module:
    """As `build_student`, with neither head: `teacher` is an encoder (`AutoModel`), and so is the student."""
    from transformers import AutoModel

    student = AutoModel.from_config(STUDENTS[card.architecture].config(teacher.config, sizes))
    _start(card, student, teacher, sample)
    return student


def _start(card: StudentCard, student: Any, teacher: Any, sample: Sample | None) -> None:
    if card.init == "copy":
        _copy_body(card, student.base_model, teacher.base_model)
    elif card.init == "project" and sample is not None:
        project(student, teacher, _layers(card, teacher), sample)
    elif card.init == "convert" and card.albert is not None:
        convert(student, teacher, card.albert, sample)


def _copy_body(card: StudentCard, student: Any, teacher: Any) -> None:
    """Fill an encoder from its teacher's; the tensors are copied, never shared. Either may have no pooler."""
    family = teacher.config.model_type
    body = STUDENTS[card.architecture].body
    if body is None:
        raise RuntimeError(f"student {card.name}: nothing is copied into a {card.architecture}")
    state = body(teacher.state_dict(), family, _layers(card, teacher))
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
