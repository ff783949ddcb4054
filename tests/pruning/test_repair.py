"""Output matrices fitted by least squares: a planted case is solved, and a pruned model comes nearer to the whole one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pruned_toys import FAMILIES, HEADS, NEURONS, whole
from torch import nn

from compress.models.pruned import layer_part
from compress.pruning import repair
from compress.pruning.removal import without_units
from compress.pruning.repair import NormalEquations


def batches(count: int = 12) -> list[dict[str, torch.Tensor]]:
    random = torch.Generator().manual_seed(3)
    found = []
    for length in range(4, 4 + count):
        ids = torch.randint(5, 60, (8, length), generator=random)
        mask = torch.ones_like(ids)
        mask[0, 3:] = 0
        ids[mask == 0] = 1
        found.append({"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)})
    return found


def test_a_planted_linear_case_is_solved_exactly():
    torch.manual_seed(0)
    wanted, layer = nn.Linear(6, 4).double(), nn.Linear(6, 4).double()
    equations = NormalEquations(damping=1e-14)
    with torch.no_grad():
        for _ in range(3):
            inputs = torch.randn(20, 6, dtype=torch.float64)
            equations.add(inputs, wanted(inputs) - layer(inputs))
        equations.correct(layer)
    assert torch.allclose(layer.weight, wanted.weight, atol=1e-9)
    assert torch.allclose(layer.bias, wanted.bias, atol=1e-9)


def test_a_layer_that_lacks_nothing_stays_as_it_is():
    layer, equations = nn.Linear(6, 4), NormalEquations()
    before = layer.weight.clone()
    with torch.no_grad():
        equations.add(torch.randn(3, 6), torch.zeros(3, 4))
        equations.correct(layer)
    assert torch.equal(layer.weight, before)


def logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        return torch.cat(
            [model(**{n: batch[n] for n in ("input_ids", "attention_mask")}).logits for batch in batches(3)]
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_repaired_model_is_nearer_to_the_whole_one(family: str):
    model = whole(family)
    pruned = without_units(model, HEADS, NEURONS)
    untouched = {name: value.clone() for name, value in model.state_dict().items()}
    before = (logits(pruned) - logits(model)).square().mean()
    repair.repair(pruned, model, batches(), method="least_squares", first_token=True)
    assert (logits(pruned) - logits(model)).square().mean() < 0.5 * before
    assert all(torch.equal(value, untouched[name]) for name, value in model.state_dict().items())


def test_units_that_others_can_stand_for_are_made_up_for(monkeypatch: pytest.MonkeyPatch):
    """Neurons that repeat others' leave nothing behind once these have their part."""
    model = whole("bert")
    with torch.no_grad():
        for layer in range(2):
            up = layer_part(model, layer, "up")
            up.weight[32:], up.bias[32:] = up.weight[:32], up.bias[:32]
    pruned = without_units(model, [range(4)] * 2, [range(32)] * 2)
    assert (logits(pruned) - logits(model)).abs().max() > 0.1
    monkeypatch.setattr(repair, "DAMPING", 1e-6)
    repair.repair(pruned, model, batches(), method="least_squares", first_token=False)
    assert (logits(pruned) - logits(model)).abs().max() < 1e-2


def test_the_last_layer_is_fitted_to_the_first_token_where_the_head_reads_no_other():
    """Nothing is left to explain where all the rest is whole: then the other tokens' errors count for nothing."""
    model = whole("bert")
    parts = [[range(4), HEADS[1]], [range(64), NEURONS[1]]]
    of_first, of_all = (without_units(model, *parts) for _ in range(2))
    repair.repair(of_first, model, batches(), method="least_squares", first_token=True)
    repair.repair(of_all, model, batches(), method="least_squares", first_token=False)
    errors = [(logits(each) - logits(model)).square().mean() for each in (of_first, of_all)]
    assert errors[0] < errors[1]
