"""Which teacher layers a student starts from and learns from, and whether the losses fit the two models. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ..errors import CompressError
from ..losses import LOSSES
from ..losses.features import ATTENTION, POOLED
from ..losses.loss import LossSpec, Pairs
from ..spec.stages import Losses
from ..spec.stages.training import LayerMap
from .cards import LayerRule
from .dimensions import Dimensions
from .families import FAMILIES


def layer_pairs(rule: LayerMap, *, student_layers: int, teacher_layers: int) -> Pairs:
    """Return (student layer, teacher layer) for every matched layer, counted from 1; layer 0, the embeddings, is handled separately.

    `uniform` is g(m) = m · N / M, rounded half up; `top` is m + N - M and `bottom` m (Jiao et al. 2020, arXiv:1909.10351, §3.1 and §4.5).
    Raises `CompressError` if the rule does not fit the depths.
    """
    if isinstance(rule, str) and student_layers > teacher_layers:
        raise CompressError(
            f"layer_map {rule}: the student has {student_layers} layers and the teacher {teacher_layers}; "
            "choose a shallower student, or list the pairs"
        )
    layers = range(1, student_layers + 1)
    if rule == "uniform":
        return evenly_spaced(student_layers, teacher_layers)
    if rule == "top":
        return tuple((m, m + teacher_layers - student_layers) for m in layers)
    if rule == "bottom":
        return tuple((m, m) for m in layers)
    return _check_pairs(rule, student_layers, teacher_layers)


def evenly_spaced(student_layers: int, teacher_layers: int) -> Pairs:
    """Return pairs by g(m) = m · N / M, rounded half up, and at least 1, for students much deeper than the teacher."""
    numbers = range(1, student_layers + 1)
    return tuple((m, max(1, (2 * m * teacher_layers + student_layers) // (2 * student_layers))) for m in numbers)


def _check_pairs(pairs: Pairs, student_layers: int, teacher_layers: int) -> Pairs:
    for student_layer, teacher_layer in pairs:
        if student_layer > student_layers or teacher_layer > teacher_layers:
            raise CompressError(
                f"layer_map: [{student_layer}, {teacher_layer}] is outside a student of {student_layers} layers and "
                f"a teacher of {teacher_layers}"
            )
    if len({student_layer for student_layer, _ in pairs}) != len(pairs):
        raise CompressError(f"layer_map: a student layer occurs twice in {[list(pair) for pair in pairs]}")
    return tuple(pairs)


def matched_layers(spec: Losses, *, student_layers: int, teacher_layers: int) -> Pairs:
    """Return the `layer_pairs` of a stage; () if none of its losses matches layers."""
    if not any(LOSSES[loss.name].matches_layers and loss.weight > 0 for loss in spec.losses):
        return ()
    return layer_pairs(spec.layer_map or "uniform", student_layers=student_layers, teacher_layers=teacher_layers)


def check_losses(
    losses: Sequence[LossSpec], *, student: Dimensions, teacher: Dimensions, where: str, pruned: bool = False
) -> None:
    """Raise `CompressError`, starting with `where`, for a loss that the two models do not allow. `pruned`: the student will lose heads, not
    yet known which."""
    for loss in losses:
        if (
            loss.weight > 0
            and pruned
            and _attends(feature for feature, _ in LOSSES[loss.name].compares(loss, ((1, 1),)))
        ):
            raise CompressError(
                f"{where}: {loss.name}: compares heads, and pruning removed different ones from each layer of the "
                "student; leave the loss out: those on logits and on hidden states remain, such as soft_target and "
                "hidden_mse"
            )
        if loss.weight > 0 and (problem := _loss_problem(loss, student, teacher)):
            raise CompressError(f"{where}: {problem}")


def _attends(features: Iterable[str]) -> bool:
    """Whether one of these features is per attention head."""
    return any(name.partition("[")[0] in ATTENTION for name in features)


def _loss_problem(spec: LossSpec, student: Dimensions, teacher: Dimensions) -> str | None:
    loss = LOSSES[spec.name]
    if lacking := _missing_feature(spec, student, teacher):
        return f"{lacking}; leave the loss out, or choose recipe logits"
    reads_pooled = any(feature == POOLED for feature, _ in loss.compares(spec, ()))
    if reads_pooled and FAMILIES[student.architecture].heads.pooler is None:
        return (
            f"{spec.name}: a {student.architecture} has no pooler; choose a student card of another architecture, "
            "or leave the loss out"
        )
    return loss.problem(spec, student, teacher)


def _missing_feature(spec: LossSpec, student: Dimensions, teacher: Dimensions) -> str | None:
    """Return what the loss reads that a model of this family cannot provide."""
    loss = LOSSES[spec.name]
    pairs = loss.compares(spec, ((1, 1),))
    if loss.reads != "logits" and FAMILIES[student.architecture].layerless:
        return f"{spec.name}: a {student.architecture} student has no layers, and so no states to compare"
    student_reads = [feature for feature, _ in pairs]
    teacher_reads = [feature for _, feature in pairs if feature]
    for sizes, read in ((student, student_reads), (teacher, teacher_reads)):
        family, attends = FAMILIES[sizes.architecture], _attends(read)
        if not family.attention.readable and attends:
            return f"{spec.name}: the attention of a {family.name} cannot be read"
        if sizes.pruned is not None and attends:
            return (
                f"{spec.name}: compares heads, and the layers of a pruned model have kept different ones "
                f"({sizes.pruned})"
            )
        if family.heads.masked_lm is None and loss.reads == "masked_tokens" and read:
            return f"{spec.name}: the masked-LM head of a {family.name} is not known"
    return None


def copied_layers(rule: LayerRule, *, teacher_layers: int, student_layers: int, card: str) -> tuple[int, ...]:
    """Return the teacher layer (from 0) for each student layer.

    `every_other` spaces them evenly with both ends included, which for 12 -> 6 gives the published [0, 2, 4, 7, 9, 11]. Raises
    `CompressError` if the rule does not fit the teacher.
    """
    if student_layers > teacher_layers:
        raise CompressError(
            f"student {card} has {student_layers} layers and the teacher {teacher_layers}: "
            "layers cannot be copied into a deeper student; choose a shallower card"
        )
    if rule == "first":
        return tuple(range(student_layers))
    if rule == "last":
        return tuple(range(teacher_layers - student_layers, teacher_layers))
    if rule == "every_other":
        steps = max(student_layers - 1, 1)
        return tuple(round(index * (teacher_layers - 1) / steps) for index in range(student_layers))
    if len(rule) != student_layers:
        raise CompressError(
            f"student {card}: copy_layers lists {len(rule)} layers and the student has {student_layers}; list one for each"
        )
    if max(rule) >= teacher_layers:
        raise CompressError(
            f"student {card}: copy_layers names layer {max(rule)} and the teacher's last is {teacher_layers - 1}"
        )
    return tuple(rule)


def blocks_of(layers: Sequence[int], teacher: Dimensions) -> tuple[int, ...]:
    """Return the blocks with weights of their own (from 0) that these teacher layers (from 0) use, as transformers assigns them."""
    return tuple(int(layer / (teacher.layers / teacher.blocks)) for layer in layers)


def distinct_blocks(rule: LayerRule, teacher: Dimensions, *, layers: int, card: str) -> tuple[int, ...]:
    """Return the teacher's blocks, in order, that a student of `layers` layers copied from it repeats, each equally often.

    Raises `CompressError` if it would have to repeat them unequally, which an ALBERT cannot.
    """
    copied = copied_layers(rule, teacher_layers=teacher.layers, student_layers=layers, card=card)
    of_layers = blocks_of(copied, teacher)
    runs = [(block, len(list(run))) for block, run in groupby(of_layers)]
    if len({length for _, length in runs}) > 1:
        raise CompressError(
            f"student {card}: its {layers} layers would run blocks {list(of_layers)} of the teacher, and an "
            "ALBERT runs each equally often; choose another number of layers, or list the layers in copy_layers"
        )
    return tuple(block for block, _ in runs)
