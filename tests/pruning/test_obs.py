"""Units removed by second-order least squares, against least squares solved anew for every set that is left."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from pruned_toys import FAMILIES, padded_batches, whole

from compress.models.pruned import layer_part
from compress.pruning.obs import RemovalOrder, removal_orders, removals

SIZES = [(6, 1), (8, 2), (12, 3)]  # inputs, and how many are a unit


def planted(inputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A matrix [4, inputs], and a root [inputs, inputs] of the squares of what it reads, which depends on one another."""
    random = np.random.default_rng(seed)
    return random.normal(size=(4, inputs)), random.normal(size=(inputs, inputs)) + np.diag(np.ones(inputs - 1), 1)


def refitted_error(weight: np.ndarray, root: np.ndarray, kept: list[int]) -> float:
    """The least that ‖(W - Ŵ) X‖² can be where Ŵ reads these inputs alone."""
    wanted = root.T @ weight.T
    fitted = np.linalg.lstsq(root.T[:, kept], wanted, rcond=None)[0]
    return float(np.square(wanted - root.T[:, kept] @ fitted).sum())


def inputs_of(units: list[int], size: int) -> list[int]:
    return [unit * size + each for unit in units for each in range(size)]


def found(weight: np.ndarray, root: np.ndarray, size: int) -> RemovalOrder:
    return RemovalOrder(*removals(torch.from_numpy(weight), torch.from_numpy(root @ root.T), size))


@pytest.mark.parametrize(("inputs", "size"), SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_errors_are_those_of_least_squares_on_what_is_left(inputs: int, size: int, seed: int) -> None:
    weight, root = planted(inputs, seed)
    order, units = found(weight, root, size), inputs // size
    assert sorted(order.order) == list(range(units))
    for count in range(units + 1):
        wanted = refitted_error(weight, root, inputs_of(order.kept(count), size))
        assert float(order.lost(np.array([count]))[0]) == pytest.approx(wanted, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(("inputs", "size"), SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_each_unit_that_goes_is_the_one_whose_loss_costs_least(inputs: int, size: int, seed: int) -> None:
    weight, root = planted(inputs, seed)
    order, left = found(weight, root, size).order, list(range(inputs // size))
    for unit in order:
        errors = {one: refitted_error(weight, root, inputs_of([u for u in left if u != one], size)) for one in left}
        assert unit == min(errors, key=errors.__getitem__)
        left.remove(unit)


def test_a_unit_that_another_stands_for_goes_first_although_its_weights_are_the_largest() -> None:
    weight, root = planted(6)
    root[4] = root[1] + 1e-3 * root[4]
    weight[:, 4] *= 10
    order = found(weight, root, 1)
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


def test_a_neuron_that_never_changes_goes_first_for_the_bias_stands_for_it() -> None:
    model = whole("bert")
    up = layer_part(model, 0, "up")
    with torch.no_grad():
        up.weight[7], up.bias[7] = 0.0, 3.0
    neurons = removal_orders(model, padded_batches(), first_token=True)[1]
    assert neurons.order[0] == 7 and 2 * neurons.errors[1] < neurons.errors[2]


def test_an_error_is_a_share_of_what_the_norm_divides_by() -> None:
    """A matrix whose output is larger beside the same residual matters more, and its share nears that of all."""
    model = whole("bert")
    scaled(model, 0, "output", slice(0, 32), 0.1)
    small = removal_orders(model, padded_batches(), first_token=True)[0].errors[-1]
    scaled(model, 0, "output", slice(0, 32), 1e4)
    large = removal_orders(model, padded_batches(), first_token=True)[0].errors[-1]
    assert 0 < small < 0.1 * large < 0.1


def test_of_the_last_layer_only_the_first_token_counts_where_the_head_reads_no_other() -> None:
    model = whole("bert")
    first, every = (removal_orders(model, padded_batches(), first_token=each) for each in (True, False))
    for part in range(2):
        assert np.array_equal(first[part].errors, every[part].errors)
        assert not np.allclose(first[2 + part].errors, every[2 + part].errors)


def test_padding_changes_nothing() -> None:
    model, batches = whole("bert"), padded_batches()
    others = [{name: value.clone() for name, value in batch.items()} for batch in batches]
    for batch in others:
        batch["input_ids"][batch["attention_mask"] == 0] = 9
    found, again = (removal_orders(model, each, first_token=False) for each in (batches, others))
    for one, other in zip(found, again, strict=True):
        assert one.order == other.order and np.allclose(one.errors, other.errors)
