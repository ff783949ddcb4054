"""Output matrices fitted by least squares: planted cases are solved, and a pruned model moves closer to the whole one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pruned_toys import FAMILIES, HEADS, NEURONS, WITHOUT_PARTS, padded_batches, whole
from torch import nn

from compress.models.pruned.model import layer_part
from compress.pruning import repair
from compress.pruning.removal import without_units
from compress.pruning.repair import NormalEquations


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
            [model(**{n: batch[n] for n in ("input_ids", "attention_mask")}).logits for batch in padded_batches(3)]
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_repaired_model_is_nearer_to_the_whole_one(family: str):
    model = whole(family)
    pruned = without_units(model, HEADS, NEURONS)
    untouched = {name: value.clone() for name, value in model.state_dict().items()}
    before = (logits(pruned) - logits(model)).square().mean()
    repair.repair(pruned, model, padded_batches(), first_token=True)
    assert (logits(pruned) - logits(model)).square().mean() < 0.5 * before
    assert all(torch.equal(value, untouched[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_fit_does_not_read_is_not_run(family: str, monkeypatch: pytest.MonkeyPatch):
    """The feed-forward part is skipped while attention is fitted, and the result is equal to the last bit."""
    states, runs = list[dict[str, torch.Tensor]](), list[float]()
    seen = repair.recorded_inputs
    for whole_layers in (False, True):
        model, counts = whole(family), list[int]()
        pruned = without_units(model, HEADS, NEURONS)
        layer_part(pruned, 0, "down").register_forward_hook(lambda *_, counts=counts: counts.append(1))
        with monkeypatch.context() as patch:
            if whole_layers:
                patch.setattr(repair, "recorded_inputs", lambda *words, **_: seen(*words))
            repair.repair(pruned, model, padded_batches(), first_token=True)
        states.append(pruned.state_dict())
        runs.append(len(counts) / len(padded_batches()))
    assert runs == [2, 3]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bias_of_a_part_that_went_stands_for_its_mean(family: str, monkeypatch: pytest.MonkeyPatch):
    """Exactly, if nothing else was removed and without damping."""
    monkeypatch.setattr(repair, "DAMPING", 1e-6)
    model = whole(family)
    pruned = without_units(model, [range(4), range(4)], [[], range(64)])
    outputs: list[torch.Tensor] = []
    handle = layer_part(model, 0, "down").register_forward_hook(lambda module, inputs, output: outputs.append(output))
    logits(model)
    handle.remove()
    mean = torch.cat(
        [each[batch["attention_mask"].bool()] for each, batch in zip(outputs, padded_batches(3), strict=True)]
    )
    repair.repair(pruned, model, padded_batches(3), first_token=True)
    assert torch.allclose(layer_part(pruned, 0, "down").bias, mean.mean(0), atol=1e-5)


@pytest.mark.parametrize("kept", WITHOUT_PARTS)
def test_a_model_without_parts_is_nearer_to_the_whole_one(kept: str):
    model = whole("bert")
    pruned = without_units(model, *WITHOUT_PARTS[kept])
    before = (logits(pruned) - logits(model)).square().mean()
    repair.repair(pruned, model, padded_batches(), first_token=True)
    assert (logits(pruned) - logits(model)).square().mean() < 0.8 * before


def test_units_that_others_can_stand_for_are_made_up_for(monkeypatch: pytest.MonkeyPatch):
    """Removed neurons that duplicate others lose nothing once the others take over their weights."""
    model = whole("bert")
    with torch.no_grad():
        for layer in range(2):
            up = layer_part(model, layer, "up")
            up.weight[32:], up.bias[32:] = up.weight[:32], up.bias[:32]
    pruned = without_units(model, [range(4)] * 2, [range(32)] * 2)
    assert (logits(pruned) - logits(model)).abs().max() > 0.1
    monkeypatch.setattr(repair, "DAMPING", 1e-6)
    repair.repair(pruned, model, padded_batches(), first_token=False)
    assert (logits(pruned) - logits(model)).abs().max() < 1e-2


def test_the_last_layer_is_fitted_to_the_first_token_where_the_head_reads_no_other():
    """Nothing else was removed, so only the last layer has errors to fit, and other tokens' errors do not count."""
    model = whole("bert")
    parts = [[range(4), HEADS[1]], [range(64), NEURONS[1]]]
    of_first, of_all = (without_units(model, *parts) for _ in range(2))
    repair.repair(of_first, model, padded_batches(), first_token=True)
    repair.repair(of_all, model, padded_batches(), first_token=False)
    errors = [(logits(each) - logits(model)).square().mean() for each in (of_first, of_all)]
    assert errors[0] < errors[1]


def test_further_texts_are_fitted_to_by_the_last_layer_alone():
    """Nothing else was removed, so only the last layer has errors to fit."""
    model, batches, runs = whole("bert"), padded_batches(4), list[int]()

    def further() -> list[dict[str, torch.Tensor]]:
        runs.append(1)
        return batches[1:]

    weights = []
    for held, more in ((batches, tuple), (batches[:1], further), (batches[:1], tuple)):
        pruned = without_units(model, [range(4), HEADS[1]], [range(64), NEURONS[1]])
        repair.repair(pruned, model, held, first_token=True, further=more)
        weights.append([layer_part(pruned, 1, part).weight for part in ("output", "down")])
    assert runs, "the further texts were asked for"
    for every, some, few in zip(*weights, strict=True):
        assert torch.allclose(some, every, atol=1e-5)  # the same sums, up to float32's rounding of the states
        assert not torch.allclose(few, every, atol=1e-2)


def test_further_texts_change_no_layer_before_the_last_and_nothing_where_the_head_reads_every_token():
    model, batches = whole("bert"), padded_batches(4)
    for first_token in (True, False):
        states = []
        for more in (tuple, lambda: batches[1:]):
            pruned = without_units(model, HEADS, NEURONS)
            repair.repair(pruned, model, batches[:1], first_token=first_token, further=more)
            states.append(pruned.state_dict())
        changed = {name for name, value in states[0].items() if not torch.equal(value, states[1][name])}
        last = {
            f"bert.encoder.layer.1.{part}.dense.{kind}"
            for part in ("attention.output", "output")
            for kind in ("weight", "bias")
        }
        assert changed == (last if first_token else set())
