"""Which teacher layer is shown beside each student layer: by the recipe's map, by the copied layers, or evenly spaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compress.attention import match_layers

MATCHING = {"losses": [{"name": "hidden_mse"}]}
LOGITS = {"losses": [{"name": "soft_target"}]}


def matched(*stages: dict[str, Any], student: int = 3, card: str | None = None, **info: Any) -> tuple[Any, str]:
    result: Any = SimpleNamespace(recipe={"stages": stages}, student=card, stages=[SimpleNamespace(info=info)])
    return match_layers(result, student=student, teacher=6)


@pytest.mark.parametrize(
    ("rule", "layers"),
    [({}, (2, 4, 6)), ({"layer_map": "top"}, (4, 5, 6)), ({"layer_map": [[1, 5], [3, 6]]}, (5, 4, 6))],
)
def test_the_map_of_a_stage_whose_losses_match_layers(rule: dict[str, Any], layers: tuple[int, ...]) -> None:
    stages = ({"distill": {**MATCHING, **rule}}, {"distill": {**LOGITS, "layer_map": "bottom"}})
    assert matched(*stages, card="distil-3l") == (layers, "the layer map of stage distill")


def test_the_last_of_several_maps_counts() -> None:
    first, last = ({"distill": {**MATCHING, "name": rule, "layer_map": rule}} for rule in ("bottom", "top"))
    assert matched(first, last) == ((4, 5, 6), "the layer map of stage top")


def test_without_a_map_the_layers_that_were_copied_by_the_run_or_by_the_card() -> None:
    assert matched({"distill": LOGITS}, card="distil-3l") == ((1, 3, 6), "the layers that it was copied from")
    assert matched({"distill": LOGITS}, card="distil-3l", copied_layers=[0, 1, 4])[0] == (1, 2, 5)
    assert matched(card="distil-3l", student=2) == ((3, 6), "even spacing")  # pruning left fewer


@pytest.mark.parametrize(
    ("student", "layers", "why"),
    [
        (2, (3, 6), "even spacing"),
        (6, (1, 2, 3, 4, 5, 6), "their place"),
        (12, (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6), "even spacing"),
    ],
)
def test_else_they_are_evenly_spaced(student: int, layers: tuple[int, ...], why: str) -> None:
    assert matched({"distill": LOGITS}, card="no-such-card", student=student) == (layers, why)
