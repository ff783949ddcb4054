"""Which teacher layer each student layer learns from; and whether the losses fit the two models. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from ..errors import CompressError
from ..spec.losses import OF_PAIRS, AttentionMse, HiddenCosine, HiddenMse, LayerMap, LossSpec, RelationKl
from ..spec.stages import Losses
from .dimensions import Dimensions

Pairs = tuple[tuple[int, int], ...]
# (loss, student's architecture) -> what the loss asks of a student and does not find.
_LACKING = {
    **{(loss, family): "no pooler" for loss in OF_PAIRS for family in ("distilbert", "electra")},
    ("masked_lm", "partial-albert"): "no masked language model in transformers",
    ("masked_soft_target", "partial-albert"): "no masked language model in transformers",
}


def layer_pairs(rule: LayerMap, *, student_layers: int, teacher_layers: int) -> Pairs:
    """(student layer, teacher layer) for every matched layer, counted from 1; layer 0, the embeddings, is apart.

    `uniform` is g(m) = m · N / M, rounded half up where that is no whole number; `top` is m + N - M and `bottom`
    m (Jiao et al. 2020, arXiv:1909.10351, §3.1 and §4.5). Raises `CompressError` when the rule does not fit the depths.
    """
    if isinstance(rule, str) and student_layers > teacher_layers:
        raise CompressError(
            f"layer_map {rule}: the student has {student_layers} layers and the teacher {teacher_layers}; "
            "choose a shallower student, or list the pairs"
        )
    layers = range(1, student_layers + 1)
    if rule == "uniform":
        return tuple((m, (2 * m * teacher_layers + student_layers) // (2 * student_layers)) for m in layers)
    if rule == "top":
        return tuple((m, m + teacher_layers - student_layers) for m in layers)
    if rule == "bottom":
        return tuple((m, m) for m in layers)
    return _checked(rule, student_layers, teacher_layers)


def _checked(pairs: Pairs, student_layers: int, teacher_layers: int) -> Pairs:
    for mine, theirs in pairs:
        if mine > student_layers or theirs > teacher_layers:
            raise CompressError(
                f"layer_map: [{mine}, {theirs}] is outside a student of {student_layers} layers and a teacher of {teacher_layers}"
            )
    if len({mine for mine, _ in pairs}) != len(pairs):
        raise CompressError(f"layer_map: a student layer stands twice in {[list(pair) for pair in pairs]}")
    return tuple(pairs)


def matched_layers(spec: Losses, *, student_layers: int, teacher_layers: int) -> Pairs:
    """`layer_pairs` of a stage; none where no loss of it matches layers."""
    if not any(isinstance(loss, HiddenMse | AttentionMse) and loss.weight > 0 for loss in spec.losses):
        return ()
    return layer_pairs(spec.layer_map or "uniform", student_layers=student_layers, teacher_layers=teacher_layers)


def check_losses(losses: Sequence[LossSpec], *, student: Dimensions, teacher: Dimensions, where: str) -> None:
    """Raise `CompressError` for a loss that the two models do not allow; `where` begins the message."""
    for loss in losses:
        if isinstance(loss, AttentionMse) and loss.weight > 0 and student.heads != teacher.heads:
            raise CompressError(
                f"{where}: attention_mse needs equal heads: the student has {student.heads}, the teacher {teacher.heads}; "
                "choose another student card, or use relation_kl, which needs neither equal heads nor equal widths"
            )
        if isinstance(loss, HiddenCosine) and loss.weight > 0 and student.hidden != teacher.hidden:
            raise CompressError(
                f"{where}: hidden_cosine needs equal widths: the student has {student.hidden}, the teacher {teacher.hidden}; "
                "choose another student card, or use hidden_mse, which learns a projection"
            )
        if isinstance(loss, RelationKl) and loss.weight > 0:
            _check_relation(loss, student, teacher, where)
        if loss.weight > 0 and (lacking := _LACKING.get((loss.name, student.architecture))):
            raise CompressError(
                f"{where}: {loss.name}: a {student.architecture} has {lacking}; choose a student card of another "
                "architecture, or leave the loss out"
            )


def _check_relation(loss: RelationKl, student: Dimensions, teacher: Dimensions, where: str) -> None:
    heads = loss.heads or teacher.heads
    for name, model, layer in (("student", student, loss.student_layer), ("teacher", teacher, loss.teacher_layer)):
        if model.hidden % heads:
            common = gcd(student.hidden, teacher.hidden)
            fitting = [count for count in range(1, 65) if common % count == 0]
            raise CompressError(
                f"{where}: relation_kl: {heads} relation heads do not divide the {name}'s hidden size {model.hidden}; "
                f"set its `heads` to one of {fitting}"
            )
        if layer is not None and layer > model.layers:
            raise CompressError(
                f"{where}: relation_kl: {name}_layer is {layer} and the {name} has {model.layers} layers"
            )
