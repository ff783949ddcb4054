"""Computing only the embeddings runs no layer, in any family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from family_teachers import classifier_of
from plain_teachers import PADDING, plain_classifier
from torch import nn

from compress.models.checkpoints.folders import load_classifier
from compress.models.families import FAMILIES
from compress.models.features.named import compute_features

LABELS = ("no", "maybe", "yes")
LAYERS = {"bert": "BertLayer", "distilbert": "TransformerBlock", "roberta": "RobertaLayer"}
LAYERS |= {"electra": "ElectraLayer", "albert": "AlbertLayer", "mpnet": "MPNetLayer", "ernie": "ErnieLayer"}
families = pytest.mark.parametrize("family", LAYERS)
IDS = torch.tensor([[2, 17, 55, 90, 3, 1, 1], [2, 30, 31, 3, 33, 34, 3]])
BATCH = {
    "input_ids": IDS,
    "attention_mask": (IDS != 1).long(),
    "token_type_ids": (torch.arange(7) > 3).long() * (IDS > 1),
}


def loaded(folder: Path) -> Any:
    return load_classifier(folder, kind="classification", labels=LABELS, trained=True).eval()


def counted(model: nn.Module, name: str) -> list[str]:
    """Return a list that grows by one with each call of a linear layer inside a layer."""
    calls: list[str] = []
    layers = [module for module in model.modules() if type(module).__name__ == name]
    for linear in {module for layer in layers for module in layer.modules() if isinstance(module, nn.Linear)}:
        linear.register_forward_pre_hook(lambda module, arguments: calls.append(str(module)))
    return calls


@families
@pytest.mark.parametrize("headless", [False, True])
def test_no_layer_runs_and_the_value_is_that_of_a_whole_forward(
    tiny_checkpoint: Callable[[str], Path], family: str, headless: bool
):
    model = loaded(tiny_checkpoint(family))
    model = model.base_model if headless else model
    calls = counted(model, LAYERS[family])
    alone = compute_features(model, BATCH, ["embeddings", "hidden[0]"])
    assert not calls
    whole = compute_features(model, BATCH, ["embeddings", "hidden[2]"])
    assert len(calls) == 12  # six in each of two layers: queries, keys, values, output and two in the FFN
    assert alone["embeddings"].shape == (2, 7, 32)  # at the layers' width, after the projection of ALBERT and ELECTRA
    assert torch.equal(alone["embeddings"], whole["embeddings"])
    assert torch.equal(alone["embeddings"], alone["hidden[0]"])


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if not family.layerless])
def test_alone_they_are_as_beside_other_features(family: str):
    """[batch, length, hidden], also for XLNet, whose layers take the length first."""
    model = plain_classifier(family) if family in PADDING else classifier_of(family)
    batch = BATCH | {"input_ids": IDS.clamp(max=89)}  # of 90 tokens
    alone = compute_features(model, batch, ["embeddings"])["embeddings"]
    assert torch.equal(alone, compute_features(model, batch, ["embeddings", "hidden[1]"])["embeddings"])


@families
def test_what_makes_the_embeddings_learns_and_nothing_else(tiny_checkpoint: Callable[[str], Path], family: str):
    model = loaded(tiny_checkpoint(family))
    compute_features(model, BATCH, ["embeddings"])["embeddings"].square().sum().backward()
    learnt = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert learnt
    assert all("embedding" in name for name in learnt)
    # the model is unchanged: a whole forward pass still runs
    assert compute_features(model, BATCH, ["logits"])["logits"].shape == (2, 3)
