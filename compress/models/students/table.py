"""The architectures that a student can have: one entry each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..dimensions import Dimensions
from . import albert, bert, distilbert

if TYPE_CHECKING:
    from torch import Tensor


State = dict[str, "Tensor"]


@dataclass(frozen=True)
class Architecture:
    """How transformers calls one, and how it takes over a teacher's weights.

    `teachers`: families that it can start from. `config(teacher config, sizes)`: the student's.
    `body(teacher state, family, layers)`: the encoder's state, with student layer i from teacher layer
    `layers[i]`, out of the state of a teacher's encoder without its head. `head(...)`: the rest of the
    classifier's state out of that of the teacher's whole classifier. Both are None where layers are not copied.
    """

    title: str
    teachers: tuple[str, ...]
    token_types: bool
    config: Callable[[Any, Dimensions], Any]
    body: Callable[[State, str, Sequence[int]], State] | None = None
    head: Callable[[State, str], State] | None = None


STUDENTS: dict[str, Architecture] = {
    "distilbert": Architecture(
        title="DistilBERT",
        teachers=("bert", "distilbert"),
        token_types=False,
        config=distilbert.student_config,
        body=distilbert.copied_body,
        head=distilbert.copied_head,
    ),
    "bert": Architecture(
        title="BERT",
        teachers=("bert",),
        token_types=True,
        config=bert.student_config,
        body=bert.copied_body,
        head=bert.copied_head,
    ),
    "albert": Architecture(title="ALBERT", teachers=("bert",), token_types=True, config=albert.student_config),
    "partial-albert": Architecture(
        title="ALBERT that shares half a block", teachers=("bert",), token_types=True, config=albert.student_config
    ),
}
