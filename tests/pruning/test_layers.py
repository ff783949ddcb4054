"""The order in which layers are removed, and the model without them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from default_suite import keeping
from family_teachers import KINDS, classifier_of

from compress.models.cards import StudentCard
from compress.models.dimensions import dimensions
from compress.models.features.named import compute_features
from compress.models.students import build_student, student_dimensions
from compress.pruning.layers import Round, layers_alone, rounds_to
from compress.tasks import TASK_KINDS

FAMILIES = [*(family for family in KINDS if family != "albert"), "mpnet"]
IDS = torch.tensor([[2, 17, 55, 80, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
INPUTS = {"input_ids": IDS, "attention_mask": (IDS != 0).long(), "token_type_ids": torch.zeros_like(IDS)}
COSTS = (3.0, 0.5, 2.0, 0.5, 1.0)  # of removing each layer
PAIRS = {(1, 3): 4.0, (1, 4): 0.1}  # added if both are removed


def divergence(kept: tuple[int, ...]) -> float:
    gone = set(range(5)) - set(kept)
    return sum(COSTS[layer] for layer in gone) + sum(cost for pair, cost in PAIRS.items() if gone.issuperset(pair))


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return compute_features(model.eval(), INPUTS, ("logits",))["logits"]


def test_one_layer_after_the_other_goes_the_one_that_costs_the_least_then() -> None:
    rounds = [*rounds_to(2, 5, divergence)]
    left = {*range(5)}
    for each in rounds:  # by trying all layers in each round
        assert each.dropped == min(sorted(left), key=lambda layer: divergence(tuple(left - {layer})))
        assert dict(zip(each.layers, each.divergences, strict=True)) == {
            layer: divergence(tuple(left - {layer})) for layer in left
        }
        left.remove(each.dropped)
    assert [each.dropped for each in rounds] == [1, 4, 2]
    assert [*rounds_to(5, 5, divergence)] == []


def test_a_first_layer_of_other_parts_stays() -> None:
    assert [each.dropped for each in rounds_to(1, 3, lambda kept: float(0 in kept), first=True)] == [1, 2]


@pytest.mark.parametrize("known", range(4))
def test_rounds_that_are_known_are_not_computed_again(known: int) -> None:
    whole = [*rounds_to(2, 5, divergence)]
    calls = list[tuple[int, ...]]()

    def counted(kept: tuple[int, ...]) -> float:
        calls.append(kept)
        return divergence(kept)

    assert [*rounds_to(2, 5, counted, before=whole[:known])] == whole[known:]
    assert len(calls) == sum(len(each.layers) for each in whole[known:])


def test_of_equals_the_first_goes() -> None:
    assert Round((0, 2, 4), (1.0, 0.5, 0.5)).dropped == 2


@pytest.mark.parametrize("family", keeping(FAMILIES, ("bert", "mpnet", "modernbert")))
def test_a_model_of_some_layers_answers_as_the_student_copied_from_them(family: str) -> None:
    teacher = classifier_of(family)
    before = logits(teacher)
    for kept in ((0, 1, 2, 3), (0, 2), (0, 1, 3)):
        card = StudentCard(name="s", title="S", layers=len(kept), copy_layers=kept).of(family)
        student = build_student(
            card, teacher, student_dimensions(card, dimensions(teacher.config.to_dict(), classes=3))
        )
        with layers_alone(teacher, kept):
            answers = logits(teacher)
        torch.testing.assert_close(answers, logits(student), rtol=0, atol=1e-6)  # the same kernels, in another module
        assert torch.equal(answers, before) == (len(kept) == 4)
    assert torch.equal(logits(teacher), before) and teacher.config.num_hidden_layers == 4


def identity(layer: Any) -> None:
    """Make a BERT layer add nothing, which leaves only its norms, of states that are already normalized."""
    with torch.no_grad():
        for part in (layer.attention.output.dense, layer.output.dense):
            part.weight.zero_()
            part.bias.zero_()


@pytest.mark.parametrize("planted", [0, 2])
def test_a_layer_that_does_nothing_goes_first(planted: int) -> None:
    teacher = classifier_of("bert")
    identity(teacher.bert.encoder.layer[planted])
    for module in teacher.bert.modules():
        if isinstance(module, torch.nn.LayerNorm):
            torch.nn.init.ones_(module.weight)
            torch.nn.init.zeros_(module.bias)
    whole = logits(teacher).numpy()

    def measured(kept: tuple[int, ...]) -> float:
        with layers_alone(teacher, kept):
            return TASK_KINDS["classification"].fidelity.divergence(whole, logits(teacher).numpy())

    first = next(rounds_to(1, 4, measured))
    assert first.dropped == planted
    assert (
        min(first.divergences)
        < min(cost for cost, layer in zip(first.divergences, first.layers, strict=True) if layer != planted) / 100
    )
