"""Match a layer of the teacher to each layer of the student."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..errors import CompressError
from ..losses.loss import Pairs
from ..models.cards import load_student
from ..models.layer_maps import copied_layers, evenly_spaced, matched_layers
from ..results import Result
from ..spec.stages import Losses

_STAGES = ("distill", "general")  # their losses may match layers of the two


def match_layers(result: Result, *, student: int, teacher: int) -> tuple[tuple[int, ...], str]:
    """Return for each layer of the student one of the teacher's, from 1, and the source of the match: the map of the last stage whose
    losses match layers; or else the layers that the student was copied from; or else even spacing, which also serves a layer that a map
    leaves out."""
    matches = dict(evenly_spaced(student, teacher))
    why = "even spacing" if student != teacher else "their place"
    for pairs, reason in (*_layer_maps(result, student, teacher), *_copied_layers(result, student, teacher)):
        if all(student_layer <= student and teacher_layer <= teacher for student_layer, teacher_layer in pairs):
            matches, why = matches | dict(pairs), reason
            break
    return tuple(matches[m] for m in range(1, student + 1)), why


def _layer_maps(result: Result, student: int, teacher: int) -> Iterator[tuple[Pairs, str]]:
    """Yield the layer maps, the last stage first."""
    for stage in reversed(result.recipe.get("stages", ())):
        for kind, fields in stage.items():
            if kind in _STAGES:
                with suppress(CompressError, ValueError):  # of an older version, or of a depth that pruning changed
                    pairs = matched_layers(_losses(fields or {}), student_layers=student, teacher_layers=teacher)
                    if pairs:
                        yield pairs, f"the layer map of stage {(fields or {}).get('name', kind)}"


def _losses(fields: dict[str, Any]) -> Losses:
    return Losses.model_validate({name: fields[name] for name in ("losses", "layer_map") if name in fields})


def _copied_layers(result: Result, student: int, teacher: int) -> Iterator[tuple[Pairs, str]]:
    layers = next((record.info["copied_layers"] for record in result.stages if "copied_layers" in record.info), None)
    if layers is None and result.student is not None:
        with suppress(CompressError):  # a card that is elsewhere
            card = load_student(result.student)
            if card.init in ("copy", "project") and card.layers == student:
                sizes = {"teacher_layers": teacher, "student_layers": student}
                layers = copied_layers(card.copy_layers, **sizes, card=card.name)
    if layers is not None and len(layers) == student:
        yield (
            tuple((student_layer, layer + 1) for student_layer, layer in enumerate(layers, 1)),
            "the layers that it was copied from",
        )
