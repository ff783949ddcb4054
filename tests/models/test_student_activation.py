"""Students with ReLU in place of their teacher's activation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from family_teachers import KINDS, LABELS, classifier_of

from compress.models.cards import StudentCard
from compress.models.dimensions import dimensions
from compress.models.fast_graph import fast_graph_problem
from compress.models.students import build_student, student_dimensions


def built(teacher: Any, activation: str | None) -> Any:
    card = StudentCard(name="s", title="S", layers=4, activation=activation).of(teacher.config.model_type)
    sizes = student_dimensions(card, dimensions(teacher.config.to_dict(), classes=len(LABELS)))
    return build_student(card, teacher, sizes).eval()


def logits(model: Any) -> Any:
    torch.manual_seed(3)
    with torch.no_grad():
        return model(input_ids=torch.randint(5, 90, (3, 11))).logits


@pytest.mark.parametrize("family", list(KINDS))
def test_it_has_its_teacher_s_weights_around_the_other_function(family: str) -> None:
    teacher = classifier_of(family)
    student, same = built(teacher, "relu"), built(teacher, None)
    assert all(map(torch.equal, student.state_dict().values(), same.state_dict().values()))
    fields, usual = student.config.to_dict(), same.config.to_dict()
    assert [fields[name] for name in fields if fields[name] != usual[name]] == ["relu"]
    again = type(student)(type(student.config).from_dict(fields)).eval()
    again.load_state_dict(same.state_dict())
    assert torch.equal(logits(student), logits(again))
    assert not torch.allclose(logits(student), logits(same), atol=1e-3)


def test_its_graph_is_fast_where_its_teacher_s_is_not() -> None:
    config = {"model_type": "bert", "hidden_act": "silu"}
    assert fast_graph_problem(config) is not None
    assert fast_graph_problem(config, activation="relu") is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"architecture": "static", "init": "static"}, "activation: a `static` has no layers"),
        ({"init": "pretrained", "checkpoint": "a/b"}, "activation: a pre-trained student is as its checkpoint"),
    ],
)
def test_students_that_cannot_have_another(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StudentCard(name="s", title="S", activation="relu", **fields)
