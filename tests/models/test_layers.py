"""Which teacher layers a student starts from."""

from __future__ import annotations

import pytest

from compress.errors import CompressError
from compress.models.cards import LayerRule
from compress.models.layer_maps import copied_layers


@pytest.mark.parametrize(
    ("teacher", "student", "expected"),
    [
        (12, 6, (0, 2, 4, 7, 9, 11)),  # DistilBERT's published choice
        (6, 3, (0, 2, 5)),
        (4, 2, (0, 3)),
        (24, 6, (0, 5, 9, 14, 18, 23)),
        (5, 5, (0, 1, 2, 3, 4)),
        (6, 1, (0,)),
    ],
)
def test_every_other_spaces_layers_evenly(teacher: int, student: int, expected: tuple[int, ...]):
    assert copied_layers("every_other", teacher_layers=teacher, student_layers=student, card="s") == expected


@pytest.mark.parametrize("teacher", range(1, 26))
def test_every_other_never_takes_a_layer_twice(teacher: int):
    for student in range(1, teacher + 1):
        layers = copied_layers("every_other", teacher_layers=teacher, student_layers=student, card="s")
        assert len(layers) == student
        assert sorted(set(layers)) == list(layers)
        assert layers[-1] == (teacher - 1 if student > 1 else 0)


@pytest.mark.parametrize(("rule", "expected"), [("first", (0, 1, 2)), ("last", (3, 4, 5)), ((5, 0, 0), (5, 0, 0))])
def test_the_other_rules(rule: LayerRule, expected: tuple[int, ...]):
    assert copied_layers(rule, teacher_layers=6, student_layers=3, card="s") == expected


@pytest.mark.parametrize(
    ("rule", "student", "message"),
    [
        ("every_other", 7, "student s has 7 layers and the teacher 6: layers cannot be copied into a deeper student"),
        ((0, 1), 3, "copy_layers lists 2 layers and the student has 3"),
        ((0, 1, 6), 3, "copy_layers names layer 6 and the teacher's last is 5"),
    ],
)
def test_a_rule_that_does_not_fit_the_teacher(rule: LayerRule, student: int, message: str):
    with pytest.raises(CompressError, match=message):
        copied_layers(rule, teacher_layers=6, student_layers=student, card="s")
