"""Gradients of masks on heads and neurons, against finite differences and against units that do nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from pruned_toys import WITHOUT_PARTS, whole
from transformers import AutoConfig, AutoModelForTokenClassification

from compress.losses.hard_label import HardLabel
from compress.metrics.tags import concatenate_labels
from compress.models.dimensions import dimensions
from compress.models.pruned.model import layer_part
from compress.objective import Objective
from compress.pruning.budget import choose, flops_costs
from compress.pruning.removal import without_units
from compress.pruning.scores import FisherScores, fisher_scores, importance, mask_gradients
from compress.runtime.words import Places
from compress.spec.kinds import KindName
from compress.tasks import Encoded, EncodedWords, TaskBatches


def texts(count: int = 12) -> TaskBatches:
    random = np.random.default_rng(4)
    rows = [random.integers(5, 60, length).astype(np.int32) for length in random.integers(3, 9, count)]
    encoded = Encoded(rows, [np.zeros(len(row), np.int8) for row in rows], random.integers(0, 3, count))
    return TaskBatches(encoded, batch_size=4, pad_id=1, seed=0)


def loss_of(model: Any, data: TaskBatches, row: int) -> float:
    """Return the loss of one example, computed without our code."""
    ids = torch.from_numpy(data.encoded.input_ids[row].astype(np.int64))[None]
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    return float(torch.nn.functional.cross_entropy(logits, torch.tensor([int(data.encoded.labels[row])])))


def scaled(model: Any, layer: int, part: str, columns: slice, by: float) -> None:
    with torch.no_grad():
        layer_part(model, layer, part).weight[:, columns] *= by


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_gradients_are_those_of_finite_differences(family: str):
    model, data = whole(family).double(), texts()
    every = [row for step in range(len(data)) for row in data.indices(step)]
    with torch.autocast("cpu", enabled=False):
        layer_gradients = mask_gradients(model, Objective((HardLabel(),)), data, examples=len(every))
    assert layer_gradients[1].heads.shape == (12, 4) and layer_gradients[1].neurons.shape == (12, 64)
    step = 1e-4
    for part, gradients, columns, unit in (
        ("output", layer_gradients[0].heads, slice(8, 16), 1),
        ("output", layer_gradients[1].heads, slice(24, 32), 3),
        ("down", layer_gradients[1].neurons, slice(17, 18), 17),
    ):
        layer = 0 if gradients is layer_gradients[0].heads else 1
        for place in (0, 5, 11):
            scaled(model, layer, part, columns, 1 + step)
            above = loss_of(model, data, every[place])
            scaled(model, layer, part, columns, (1 - step) / (1 + step))
            below = loss_of(model, data, every[place])
            scaled(model, layer, part, columns, 1 / (1 - step))
            assert float(gradients[place, unit]) == pytest.approx((above - below) / (2 * step), rel=2e-3, abs=1e-6)


def test_a_useless_head_and_neuron_come_last_and_the_model_stays_as_it_was():
    model, data = whole("bert").train(), texts()
    scaled(model, 1, "output", slice(16, 24), 0.0)
    scaled(model, 0, "down", slice(40, 41), 0.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    steps: list[tuple[int, int]] = []
    layer_gradients = mask_gradients(
        model, Objective((HardLabel(),)), data, examples=6, on_progress=lambda *step: steps.append(step)
    )
    assert len(layer_gradients[0].heads) == 6 and steps == [(4, 6), (6, 6)]
    heads, neurons = importance(layer_gradients[1].heads), importance(layer_gradients[0].neurons)
    assert int(heads.argmin()) == 2 and float(heads[2]) == 0 < float(heads.max())
    assert int(neurons.argmin()) == 40 and float(neurons[40]) == 0
    assert model.training and all(parameter.requires_grad for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_useless_part_goes_whole_before_anything_else():
    """The first layer's attention and the last layer's neurons add nothing."""
    model = whole("bert")
    scaled(model, 0, "output", slice(None), 0.0)
    scaled(model, 1, "down", slice(None), 0.0)
    scores = fisher_scores(mask_gradients(model, Objective((HardLabel(),)), texts(), examples=12))
    costs = flops_costs(dimensions(model.config.to_dict(), classes=3), 6)
    kept = choose(scores, costs, 0.7 * costs.whole)
    assert (kept.heads, kept.neurons) == ([[], list(range(4))], [list(range(64)), []])


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_a_model_without_parts_is_scored_by_what_it_has(family: str):
    """Its scores are those of the whole model with the matrices of the other units set to zero."""
    heads, neurons = WITHOUT_PARTS["attention first"]
    model = whole(family)
    pruned = without_units(model, heads, neurons)
    scaled(model, 0, "output", slice(None), 0.0)
    scaled(model, 0, "down", slice(16, 64), 0.0)
    scaled(model, 1, "output", slice(8, 16), 0.0)
    scaled(model, 1, "down", slice(None), 0.0)
    layer_gradients, wanted = (
        mask_gradients(each, Objective((HardLabel(),)), texts(), examples=12) for each in (pruned, model)
    )
    assert [each.shape[1] for layer in layer_gradients for each in (layer.heads, layer.neurons)] == [0, 16, 3, 0]
    assert torch.allclose(layer_gradients[0].neurons, wanted[0].neurons[:, :16], atol=1e-6)
    assert torch.allclose(layer_gradients[1].heads, wanted[1].heads[:, heads[1]], atol=1e-6)
    lost = [float(part.losses(np.array([0]))[0]) for part in fisher_scores(layer_gradients)]
    assert lost[0] == lost[3] == 0 < min(lost[1:3])


def test_the_least_important_units_are_lost_first():
    scores = FisherScores(torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))  # squares sum to 1, 9 and 4
    assert scores.losses(np.arange(4)).tolist() == [14, 5, 1, 0]


def test_an_example_is_scored_alone():
    """An example's score does not depend on the rest of its batch."""
    model, data = whole("bert"), texts()
    others = TaskBatches(data.encoded, batch_size=12, pad_id=1, seed=0)
    objective = Objective((HardLabel(),))
    parted, together = (mask_gradients(model, objective, each, examples=12) for each in (data, others))
    assert torch.allclose(importance(parted[0].neurons), importance(together[0].neurons), rtol=1e-3)


@pytest.mark.parametrize("kind", ["regression"])
def test_other_losses_have_gradients_too(kind: KindName):
    model, data = whole("bert"), texts()
    model.classifier = torch.nn.Linear(32, 1)
    data.encoded.labels[:] = 1
    labelled = Encoded(data.encoded.input_ids, data.encoded.token_type_ids, data.encoded.labels.astype(np.float32))
    layer_gradients = mask_gradients(
        model,
        Objective((HardLabel(),), kind=kind),
        TaskBatches(labelled, batch_size=4, pad_id=1, seed=0),
        examples=8,
    )
    assert float(importance(layer_gradients[0].heads).sum()) > 0


def test_a_word_counts_alike_in_every_batch():
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(5)
    config = AutoConfig.for_model("bert", vocab_size=64, max_position_embeddings=32, num_labels=3, **sizes)
    model: Any = AutoModelForTokenClassification.from_config(config).eval()
    random = np.random.default_rng(4)
    lengths = random.integers(3, 9, 12)
    rows = [random.integers(5, 60, length).astype(np.int32) for length in lengths]
    position = np.concatenate([np.arange(1, length - 1) for length in lengths])
    gold = concatenate_labels([random.integers(0, 3, length - 2) for length in lengths])
    places = Places(np.repeat(np.arange(12), lengths - 2), position, position)
    encoded = EncodedWords(rows, [np.zeros(len(row), np.int8) for row in rows], gold, places)
    objective = Objective((HardLabel(),), kind="tagging")
    alone, all_at_once = (
        mask_gradients(model, objective, TaskBatches(encoded, batch_size=size, pad_id=1, seed=0), examples=12)
        for size in (1, 12)
    )
    for one, other in zip(alone, all_at_once, strict=True):
        assert torch.allclose(importance(one.neurons), importance(other.neurons), rtol=1e-3)
