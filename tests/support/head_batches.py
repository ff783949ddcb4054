"""A batch, and the logits and students of models with any head."""

from __future__ import annotations

from typing import Any

import torch

from compress.models.cards import StudentCard
from compress.models.dimensions import Dimensions, dimensions
from compress.models.features.named import compute_features
from compress.models.heads import HEADS, head_of
from compress.models.students import build_student, student_dimensions

ROWS, LENGTH, SHORT = 4, 12, 5


def batch() -> dict[str, Any]:
    """Return `ROWS` rows of `LENGTH` tokens in two segments, except the second row, which has `SHORT` tokens."""
    ids, mask = (
        torch.randint(6, 90, (ROWS, LENGTH), generator=torch.Generator().manual_seed(3)),
        torch.ones(ROWS, LENGTH),
    )
    mask[1, SHORT:] = 0
    types = torch.zeros_like(ids)
    types[:, 3:] = 1
    return {"input_ids": ids, "attention_mask": mask.long(), "token_type_ids": types * mask.long()}


def short_row() -> dict[str, Any]:
    """Return the second row of `batch` without its padding."""
    return {name: value[1:2, :SHORT] for name, value in batch().items()}


def logits(model: Any, inputs: dict[str, Any] | None = None) -> Any:
    with torch.no_grad():
        return compute_features(model, inputs or batch(), ("logits",))["logits"]


def card(layers: int = 4, **more: Any) -> StudentCard:
    return StudentCard(**{"name": "s", "title": "S", "layers": layers, **more})


def sizes(wanted: StudentCard, teacher: Any) -> Dimensions:
    """Return the student's dimensions for the kind of task of the teacher's head."""
    kind: Any = next(kind for kind, head in HEADS.items() if head is head_of(teacher))
    classes = logits(teacher).shape[-1]
    return student_dimensions(wanted, dimensions(teacher.config.to_dict(), classes=classes, kind=kind))


def built(wanted: StudentCard, teacher: Any, sample: Any = None) -> Any:
    return build_student(wanted.of(teacher.config.model_type), teacher, sizes(wanted, teacher), sample).eval()
