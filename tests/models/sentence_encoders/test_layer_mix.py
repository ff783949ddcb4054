"""A learnt mix of layers' states: its weights, its checkpoint, and the outputs of the graphs."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import slow
from layered_vectors import FAST, batch, check_graphs, expected, int8_outputs, vectors
from sentence_encoders import encoder

from compress.models.cards import StudentCard
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import read_config
from compress.models.features.named import compute_features
from compress.models.sentence_encoders.layer_mix import LayerMix, add_mix, learnt_mix, start_mix, written_mix
from compress.pruning.removal import without_units

WEIGHTS = [0.1, 0.4, 0.2, 0.05, 0.25]  # of the embeddings and four layers
PLACES = dict(enumerate(WEIGHTS))


def mixed(family: str, pooling: str = "mean") -> Any:
    """Return an encoder with the mix `WEIGHTS`."""
    model = copy.deepcopy(encoder(family, pooling)).eval()
    model.config.sentence_layers, model.config.output_hidden_states = WEIGHTS, True
    add_mix(model)
    return model


def saved(model: Any, folder: Path) -> Path:
    with written_mix(model):
        model.save_pretrained(folder)
    return folder


def test_weights_are_a_softmax_that_begins_where_it_is_told_to() -> None:
    mix = LayerMix(WEIGHTS)
    np.testing.assert_allclose(mix().detach().numpy(), WEIGHTS, rtol=1e-5)
    with torch.no_grad():
        mix.scores.add_(3.0)
    np.testing.assert_allclose(mix().detach().numpy(), WEIGHTS, rtol=1e-3)
    assert LayerMix([0.0, 1.0])().isfinite().all(), "a weight that became nothing"


def test_the_gradient_is_that_of_the_softmax_alone() -> None:
    """So when it is clipped together with the encoder's, it takes only its share of the norm."""
    mix, scores = LayerMix(WEIGHTS), torch.tensor(WEIGHTS).log().requires_grad_()
    for weights in (mix(), scores.softmax(dim=0)):
        (weights * torch.arange(5.0)).sum().backward()
    torch.testing.assert_close(mix.scores.grad, scores.grad, rtol=1e-4, atol=0.0)


def test_a_student_begins_with_equal_weights() -> None:
    model = copy.deepcopy(encoder("bert", "mean"))
    assert learnt_mix(model) is None
    start_mix(model)
    np.testing.assert_allclose(learnt_mix(model) or [], [0.2] * 5, rtol=1e-6)


def test_the_mix_learns_at_the_rates_of_encoders() -> None:
    """With layer 1's vectors as the target, 100 steps at 5e-4 give that layer nearly all the weight."""
    model = copy.deepcopy(encoder("bert", "mean")).eval()
    start_mix(model)
    target = compute_features(encoder("bert", "mean"), batch(), ("hidden[1]",))["hidden[1]"]
    real = batch()["attention_mask"][..., None]
    target = torch.nn.functional.normalize((target * real).sum(1) / real.sum(1), dim=-1).detach()
    optimizer = torch.optim.AdamW(model.layer_mix.parameters(), lr=5e-4)
    for _ in range(100):
        loss = (1 - (compute_features(model, batch(), ("logits",))["logits"] * target).sum(-1)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    mix = learnt_mix(model) or []
    assert mix[1] == max(mix) and mix[1] > 0.8


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_checkpoint_is_one_of_transformers_with_the_weights_in_its_config(tmp_path: Path, pooling: str) -> None:
    from transformers import AutoModel

    model = mixed("bert", pooling)
    folder = saved(model, tmp_path)
    assert learnt_mix(model) is not None, "training goes on with it"
    np.testing.assert_allclose(read_config(folder)["sentence_layers"], WEIGHTS, rtol=1e-5)
    _, report = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not report["unexpected_keys"]
    assert all(name.startswith("pooler.") for name in report["missing_keys"])
    again: Any = load_classifier(folder, kind="embedding", labels=(), trained=True)
    np.testing.assert_allclose(vectors(again.eval()), expected("bert", pooling, PLACES), rtol=0, atol=2e-6)
    np.testing.assert_allclose(learnt_mix(again) or [], WEIGHTS, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "pooling"),
    [("bert", "cls"), *((name, "mean") for name in FAST)],
)
def test_every_graph_has_the_mix_inside(tmp_path: Path, family: str, pooling: str) -> None:
    folder = saved(mixed(family, pooling), tmp_path)
    check_graphs(folder, tmp_path, expected(family, pooling, PLACES))


@pytest.mark.parametrize("method", ["static", *slow("dynamic", "smoothquant")])
def test_int8_keeps_the_mix(tmp_path: Path, method: Any) -> None:
    folder = saved(mixed("bert"), tmp_path / "model")
    _, embeddings = int8_outputs(folder, tmp_path, method)
    assert ((embeddings * expected("bert", "mean", PLACES)).sum(axis=1) > 0.98).all()


def test_a_pruned_encoder_keeps_the_mix(tmp_path: Path) -> None:
    model = mixed("bert")
    with torch.no_grad():
        model.layer_mix.scores.add_(torch.linspace(0.0, 0.01, len(WEIGHTS)))  # learnt since it began
    config = model.config
    layers, heads, neurons = config.num_hidden_layers, config.num_attention_heads, config.intermediate_size
    whole = without_units(model, [range(heads)] * layers, [range(neurons)] * layers)
    assert learnt_mix(whole) == learnt_mix(model) != pytest.approx(WEIGHTS)
    np.testing.assert_allclose(vectors(whole), vectors(model), atol=1e-6)
    pruned = without_units(model, [range(1)] * layers, [range(16)] * layers)
    assert learnt_mix(
        load_classifier(saved(pruned, tmp_path), kind="embedding", labels=(), trained=True)
    ) == pytest.approx(learnt_mix(model))


def test_a_card_asks_for_it_and_one_without_layers_cannot() -> None:
    card = StudentCard(name="s", title="S", layers=2, vector_layers="mix")
    assert "vector_layers" in card.model_dump()
    assert "vector_layers" not in StudentCard(name="s", title="S", layers=2).model_dump(), "keys of others stay"
    with pytest.raises(ValueError, match="vector_layers: a `static` has no layers"):
        StudentCard(name="s", title="S", architecture="static", init="static", vector_layers="mix")
    with pytest.raises(ValueError, match="vector_layers: decided by the checkpoint of a pre-trained student"):
        StudentCard(name="s", title="S", init="pretrained", checkpoint="x", vector_layers="mix")
