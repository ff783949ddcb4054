"""Units removed by second-order least squares, against least squares solved anew for every remaining set."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from pruned_toys import FAMILIES, WITHOUT_PARTS, padded_batches, whole

from compress.models.dimensions import dimensions
from compress.models.pruned.model import layer_part
from compress.pruning import obs
from compress.pruning.budget import choose, flops_costs
from compress.pruning.obs import RemovalOrder, removal_orders, removals
from compress.pruning.removal import without_units
from compress.pruning.repair import DAMPING

SIZES = [(6, 1), (8, 2), (12, 3)]  # inputs, and inputs per unit


def planted(inputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix [4, inputs], and a square root [inputs, inputs] of the second moments of its correlated inputs."""
    random = np.random.default_rng(seed)
    return random.normal(size=(4, inputs)), random.normal(size=(inputs, inputs)) + np.diag(np.ones(inputs - 1), 1)


def refitted_error(weight: np.ndarray, root: np.ndarray, kept: list[int]) -> float:
    """Return the minimum of ‖(W - Ŵ) X‖² over all Ŵ that read only these inputs."""
    wanted = root.T @ weight.T
    fitted = np.linalg.lstsq(root.T[:, kept], wanted, rcond=None)[0]
    return float(np.square(wanted - root.T[:, kept] @ fitted).sum())


def inputs_of(units: list[int], size: int) -> list[int]:
    return [unit * size + each for unit in units for each in range(size)]


def removal_order(weight: np.ndarray, root: np.ndarray, size: int) -> RemovalOrder:
    return RemovalOrder(*removals(torch.from_numpy(weight), torch.from_numpy(root @ root.T), size))


@pytest.mark.parametrize(("inputs", "size"), SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_errors_are_those_of_least_squares_on_what_is_left(inputs: int, size: int, seed: int) -> None:
    weight, root = planted(inputs, seed)
    order, units = removal_order(weight, root, size), inputs // size
    assert sorted(order.order) == list(range(units))
    for count in range(units + 1):
        wanted = refitted_error(weight, root, inputs_of(order.kept(count), size))
        assert float(order.losses(np.array([count]))[0]) == pytest.approx(wanted, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(("inputs", "size"), SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_each_unit_that_goes_is_the_one_whose_loss_costs_least(inputs: int, size: int, seed: int) -> None:
    weight, root = planted(inputs, seed)
    order, left = removal_order(weight, root, size).order, list(range(inputs // size))
    for unit in order:
        errors = {one: refitted_error(weight, root, inputs_of([u for u in left if u != one], size)) for one in left}
        assert unit == min(errors, key=errors.__getitem__)
        left.remove(unit)


def test_a_unit_that_another_stands_for_goes_first_although_its_weights_are_the_largest() -> None:
    weight, root = planted(6)
    root[4] = root[1] + 1e-3 * root[4]
    weight[:, 4] *= 10
    order = removal_order(weight, root, 1)
    assert order.order[0] in (1, 4)
    assert order.errors[1] < 1e-3 * order.errors[2]


def scaled(model: Any, layer: int, part: str, columns: slice, by: float) -> None:
    with torch.no_grad():
        layer_part(model, layer, part).weight[:, columns] *= by


@pytest.mark.parametrize("family", FAMILIES)
def test_a_useless_head_and_neuron_go_first_and_the_model_stays_as_it_was(family: str) -> None:
    model = whole(family)
    scaled(model, 1, "output", slice(16, 24), 0.0)
    scaled(model, 0, "down", slice(40, 41), 0.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    steps: list[tuple[int, int]] = []
    orders = removal_orders(model, padded_batches(), first_token=True, on_progress=lambda *step: steps.append(step))
    assert [len(each.order) for each in orders] == [4, 64, 4, 64] and steps == [(1, 2), (2, 2)]
    neurons, heads = orders[1], orders[2]
    assert heads.order[0] == 2 and heads.errors[1] == pytest.approx(0) and heads.errors[2] > 0
    assert neurons.order[0] == 40 and neurons.errors[1] == pytest.approx(0) and neurons.errors[2] > 0
    assert all(earlier <= later for each in orders for earlier, later in pairwise(each.errors.tolist()))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_useless_part_goes_whole_before_anything_else(family: str) -> None:
    """The first layer's attention and the last layer's neurons add nothing."""
    model = whole(family)
    scaled(model, 0, "output", slice(None), 0.0)
    scaled(model, 1, "down", slice(None), 0.0)
    orders = removal_orders(model, padded_batches(), first_token=True)
    sizes = dimensions(model.config.to_dict(), classes=3)
    costs = flops_costs(sizes, 9)
    kept = choose(orders, costs, 0.7 * costs.whole)
    assert (kept.heads, kept.neurons) == ([[], list(range(4))], [list(range(64)), []])


def test_a_model_without_parts_is_judged_by_what_it_has() -> None:
    pruned = without_units(whole("bert"), *WITHOUT_PARTS["attention first"])
    orders = removal_orders(pruned, padded_batches(), first_token=False)
    assert [len(each.order) for each in orders] == [0, 16, 3, 0]
    assert [each.losses(np.array([0])).tolist() == [0.0] for each in orders] == [True, False, False, True]


def test_a_neuron_that_never_changes_goes_first_for_the_bias_stands_for_it() -> None:
    model = whole("bert")
    up = layer_part(model, 0, "up")
    with torch.no_grad():
        up.weight[7], up.bias[7] = 0.0, 3.0
    neurons = removal_orders(model, padded_batches(), first_token=True)[1]
    assert neurons.order[0] == 7 and 2 * neurons.errors[1] < neurons.errors[2]


@pytest.mark.parametrize("first_token", [True, False])
@pytest.mark.parametrize(
    ("layer", "part", "size"), [(0, "output", 8), (0, "down", 1), (1, "output", 8), (1, "down", 1)]
)
def test_the_error_with_half_of_the_units_is_what_changes_at_the_end(
    layer: int, part: str, size: int, first_token: bool
) -> None:
    model, batches = whole("bert"), padded_batches()
    order = removal_orders(model, batches, first_token=first_token)[2 * layer + (part == "down")]
    before, read = last_states(model, batches, layer, part, first_token=first_token)
    linear, kept = layer_part(model, layer, part), inputs_of(order.kept(len(order.order) // 2), size)
    weight, means = linear.weight.detach().double(), read.mean(0)
    squares = (read - means).T @ (read - means)
    squares += torch.eye(len(squares)) * DAMPING * squares.diagonal().mean()
    fitted = torch.zeros_like(weight)
    fitted[:, kept] = torch.linalg.solve(squares[kept][:, kept], squares[kept] @ weight.T).T
    with torch.no_grad():
        linear.bias += ((weight - fitted) @ means).float()
        linear.weight.copy_(fitted)
    after, _ = last_states(model, batches, layer, part, first_token=first_token)
    share = (after - before).square().sum() / (before - before.mean(1, keepdim=True)).square().sum()
    wanted = pytest.approx(float(share), rel=1e-2)
    assert float(order.losses(np.array([len(order.order) // 2]))[0]) == wanted


@pytest.mark.parametrize("units", [range(8, 32), range(24)])
def test_a_layer_with_many_useless_units_is_not_free(units: range) -> None:
    """Three of four heads are useless: removing the last one costs as much as if it had been the only one."""
    model, alone = whole("bert"), whole("bert")
    scaled(model, 0, "output", slice(units.start, units.stop), 0.0)
    scaled(alone, 0, "output", slice(units.start, units.stop), 1e-6)
    order, wanted = (removal_orders(each, padded_batches(), first_token=True)[0] for each in (model, alone))
    assert order.errors[3] == pytest.approx(0) and order.errors[4] == pytest.approx(wanted.errors[4], rel=1e-3)
    assert order.errors[4] > 1e-3


def test_neurons_that_never_change_do_not_hide_what_the_others_are_for() -> None:
    model = whole("bert")
    up = layer_part(model, 0, "up")
    with torch.no_grad():
        up.weight[8:], up.bias[8:] = 0.0, 3.0
    neurons = removal_orders(model, padded_batches(), first_token=True)[1]
    assert set(neurons.order[-8:]) == set(range(8))
    assert neurons.errors[-1] > 1e-4


def last_states(
    model: Any, batches: list[dict[str, torch.Tensor]], layer: int, part: str, *, first_token: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the [token, hidden] states that the head reads and the [token, in] inputs of a part of a layer, for real tokens,
    computed without our code."""
    states, read = [], []
    for batch in batches:
        captures: list[torch.Tensor] = []
        handle = layer_part(model, layer, part).register_forward_pre_hook(
            lambda _, inputs, to=captures: to.append(inputs[0])
        )
        with torch.no_grad():
            output = model.bert(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        handle.remove()
        real = batch["attention_mask"].bool()
        first = torch.zeros_like(real)
        first[:, 0] = True
        states.append(output.last_hidden_state[first if first_token else real])
        read.append(captures[0][first if first_token and layer == 1 else real])
    return torch.cat(states), torch.cat(read).double()


def test_some_of_the_texts_tell_what_changes_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the texts gives another scale of a similar size."""
    model, batches = whole("bert"), padded_batches()
    tokens = sum(int(batch["attention_mask"].sum()) for batch in batches)
    every = removal_orders(model, batches, first_token=True)
    monkeypatch.setattr(obs, "PROBE_TOKENS", tokens // 4)
    some = removal_orders(model, batches, first_token=True)
    for one, other in zip(every, some, strict=True):
        assert one.order == other.order
        assert 0.5 < other.errors[-1] / one.errors[-1] < 2 and other.errors[-1] != one.errors[-1]


def test_of_the_last_layer_only_the_first_token_counts_where_the_head_reads_no_other() -> None:
    model = whole("bert")
    first, every = (removal_orders(model, padded_batches(), first_token=each) for each in (True, False))
    shares = [[part.errors / part.errors[-1] for part in orders] for orders in (first, every)]
    for part in range(2):
        assert np.allclose(shares[0][part], shares[1][part])
        assert not np.allclose(shares[0][2 + part], shares[1][2 + part])


def test_padding_changes_nothing() -> None:
    model, batches = whole("bert"), padded_batches()
    others = [{name: value.clone() for name, value in batch.items()} for batch in batches]
    for batch in others:
        batch["input_ids"][batch["attention_mask"] == 0] = 9
    orders, again = (removal_orders(model, each, first_token=False) for each in (batches, others))
    for one, other in zip(orders, again, strict=True):
        assert one.order == other.order and np.allclose(one.errors, other.errors)


def test_further_texts_tell_of_the_last_layer_alone() -> None:
    """Its errors are those of all texts up to the scale, which comes from the texts held in memory."""
    model, batches = whole("bert"), padded_batches(6)
    every, few = (removal_orders(model, each, first_token=True) for each in (batches, batches[:2]))
    more = removal_orders(model, batches[:2], first_token=True, further=lambda: batches[2:])
    for place, (all_texts, some, both) in enumerate(zip(every, few, more, strict=True)):
        if place < 2:  # the first layer
            assert both.order == some.order and both.errors.tolist() == some.errors.tolist()
            continue
        assert both.order == all_texts.order
        shares = (each.errors / each.errors[-1] for each in (both, all_texts))
        np.testing.assert_allclose(*shares, rtol=1e-6)  # the same sums, in float64, of float32 states
        assert both.errors.tolist() != some.errors.tolist()
    (per_token, alone) = (
        removal_orders(model, batches[:2], first_token=False, further=each) for each in (tuple, lambda: batches[2:])
    )
    assert [each.errors.tolist() for each in per_token] == [each.errors.tolist() for each in alone]
