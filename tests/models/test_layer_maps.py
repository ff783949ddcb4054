"""Layer maps computed by hand, and the losses that two models' sizes rule out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compress.errors import CompressError
from compress.losses.attention_mse import AttentionMse
from compress.losses.embedding_mse import EmbeddingMse
from compress.losses.hidden_mse import HiddenMse
from compress.losses.masked_lm import MaskedTokens
from compress.losses.relation_kl import RelationKl
from compress.losses.segment_pairs import SentenceOrder
from compress.losses.soft_target import SoftTarget
from compress.models.dimensions import Dimensions
from compress.models.layer_maps import check_losses, layer_pairs


def teachers_layers(rule: Any, student: int, teacher: int) -> list[int]:
    pairs = layer_pairs(rule, student_layers=student, teacher_layers=teacher)
    assert [mine for mine, _ in pairs] == list(range(1, student + 1))
    return [theirs for _, theirs in pairs]


@pytest.mark.parametrize(
    ("student", "teacher", "expected"),
    [
        (4, 12, [3, 6, 9, 12]),  # as in the paper
        (6, 12, [2, 4, 6, 8, 10, 12]),
        (3, 6, [2, 4, 6]),
        (6, 24, [4, 8, 12, 16, 20, 24]),
        (2, 4, [2, 4]),
        (6, 6, [1, 2, 3, 4, 5, 6]),
        (5, 12, [2, 5, 7, 10, 12]),  # 2.4, 4.8, 7.2, 9.6, 12
        (4, 6, [2, 3, 5, 6]),  # 1.5, 3, 4.5, 6: halves round up
        (1, 6, [6]),
    ],
)
def test_uniform(student: int, teacher: int, expected: list[int]):
    assert teachers_layers("uniform", student, teacher) == expected


@pytest.mark.parametrize(("student", "teacher"), [(4, 12), (6, 12), (3, 6), (6, 24)])
def test_top_and_bottom(student: int, teacher: int):
    assert teachers_layers("top", student, teacher) == list(range(teacher - student + 1, teacher + 1))
    assert teachers_layers("bottom", student, teacher) == list(range(1, student + 1))


def test_pairs_that_are_listed_are_taken_as_they_are():
    pairs = ((2, 5), (3, 6))
    assert layer_pairs(pairs, student_layers=3, teacher_layers=6) == pairs


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("uniform", "layer_map uniform: the student has 8 layers and the teacher 6; choose a shallower student"),
        ("top", "layer_map top: the student has 8"),
        ("bottom", "layer_map bottom: the student has 8"),
        (((1, 7),), r"\[1, 7\] is outside a student of 8 layers and a teacher of 6"),
        (((9, 6),), r"\[9, 6\] is outside"),
        (((1, 2), (1, 3)), r"a student layer occurs twice in \[\[1, 2\], \[1, 3\]\]"),
    ],
)
def test_a_map_that_does_not_fit(rule: Any, message: str):
    with pytest.raises(CompressError, match=message):
        layer_pairs(rule, student_layers=8, teacher_layers=6)


TEACHER = Dimensions("bert", 6, 384, 12, 1536, 100, 64, 2, 2, 384, 6)
NARROW = replace(TEACHER, layers=3, hidden=320, heads=10, embedding=320, blocks=3)
EVEN = replace(NARROW, hidden=312, heads=12, embedding=312)


def check(*losses: Any, student: Dimensions) -> None:
    check_losses(losses, student=student, teacher=TEACHER, where="recipe x, stage y")


def test_attention_mse_needs_equal_heads():
    check(AttentionMse(), HiddenMse(), EmbeddingMse(), SoftTarget(), student=EVEN)
    check(AttentionMse(weight=0), HiddenMse(), student=NARROW)
    with pytest.raises(CompressError) as caught:
        check(HiddenMse(), AttentionMse(), student=NARROW)
    assert str(caught.value) == (
        "recipe x, stage y: attention_mse needs equal heads: the student has 10, the teacher 12; choose another student "
        "card, or use relation_kl, which needs neither equal heads nor equal widths"
    )


def test_relation_heads_divide_both_widths():
    check(RelationKl(), student=EVEN)
    check(RelationKl(heads=16), student=NARROW)
    check(RelationKl(weight=0), student=NARROW)
    with pytest.raises(CompressError, match=r"12 relation heads do not divide the student's hidden size 320") as caught:
        check(RelationKl(), student=NARROW)
    assert "set its `heads` to one of [1, 2, 4, 8, 16, 32, 64]" in str(caught.value)
    with pytest.raises(CompressError, match="10 relation heads do not divide the teacher's hidden size 384"):
        check(RelationKl(heads=10), student=NARROW)


def test_the_related_layers_exist():
    check(RelationKl(student_layer=3, teacher_layer=6), student=EVEN)
    with pytest.raises(CompressError, match="student_layer is 4 and the student has 3 layers"):
        check(RelationKl(student_layer=4), student=EVEN)
    with pytest.raises(CompressError, match="teacher_layer is 7 and the teacher has 6 layers"):
        check(RelationKl(teacher_layer=7), student=EVEN)


def test_what_a_loss_of_plain_text_asks_of_a_student():
    check(SentenceOrder(), MaskedTokens(), student=EVEN)
    student = replace(EVEN, architecture="distilbert")
    check(SentenceOrder(weight=0), student=student)
    lacking = "sentence_order: a distilbert has no pooler"
    with pytest.raises(CompressError, match=f"recipe x, stage y: {lacking}; choose a student card of another arch"):
        check(SentenceOrder(), student=student)
