"""A mix of layers' states that is learnt: its weights, its checkpoint, and what the graphs give."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_encoders import encoder

from compress.export.fast import build_fast
from compress.export.tracing import load, trace
from compress.graphs import write_model
from compress.models.cards import StudentCard
from compress.models.checkpoints import load_classifier
from compress.models.dimensions import read_config
from compress.models.families import FAMILIES
from compress.models.features import compute_features
from compress.models.layer_mix import LayerMix, add_mix, learnt_mix, start_mix, written_mix
from compress.quantize import quantize_onnx
from compress.sessions import open_session
from compress.spec.quantization import Quantize

WEIGHTS = [0.1, 0.4, 0.2, 0.05, 0.25]  # of the embeddings and four layers
FAST = [name for name, family in FAMILIES.items() if family.fast and not family.layerless]


def batch() -> dict[str, torch.Tensor]:
    ids, mask = torch.randint(6, 90, (2, 11), generator=torch.Generator().manual_seed(5)), torch.ones(2, 11)
    mask[1, 6:] = 0
    return {"input_ids": ids, "attention_mask": mask.long(), "token_type_ids": torch.zeros_like(ids)}


def mixed(family: str, pooling: str = "mean") -> Any:
    """With these weights."""
    model = copy.deepcopy(encoder(family, pooling)).eval()
    model.config.sentence_layers, model.config.output_hidden_states = WEIGHTS, True
    add_mix(model)
    return model


def vectors(model: Any) -> np.ndarray:
    with torch.no_grad():
        return compute_features(model, batch(), ("logits",))["logits"].numpy()


def expected(family: str, pooling: str = "mean") -> np.ndarray:
    """By hand, a text at a time."""
    model, inputs, found = encoder(family, pooling), batch(), []
    names = [name for name in inputs if name != "token_type_ids" or family not in ("distilbert", "mpnet", "roberta")]
    for row, length in enumerate((11, 6)):
        with torch.no_grad():
            one = {name: inputs[name][row : row + 1, :length] for name in names}
            states: Any = model(**one, output_hidden_states=True).hidden_states
        mix = np.tensordot(WEIGHTS, np.stack([each[0].numpy() for each in states]), axes=1)
        vector = mix[0] if pooling == "cls" else mix.mean(axis=0)
        found.append(vector / np.linalg.norm(vector))
    return np.stack(found)


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


def test_a_student_begins_with_equal_weights() -> None:
    model = copy.deepcopy(encoder("bert", "mean"))
    assert learnt_mix(model) is None
    start_mix(model)
    np.testing.assert_allclose(learnt_mix(model) or [], [0.2] * 5, rtol=1e-6)


def test_the_mix_learns_at_the_rates_of_encoders() -> None:
    """Against the vectors of layer 1 alone: 100 steps at 5e-4 give it nearly all weight."""
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
    found = learnt_mix(model) or []
    assert found[1] == max(found) and found[1] > 0.8


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
    np.testing.assert_allclose(vectors(again.eval()), expected("bert", pooling), rtol=0, atol=2e-6)
    np.testing.assert_allclose(learnt_mix(again) or [], WEIGHTS, rtol=1e-5)


@pytest.mark.parametrize(
    ("family", "pooling"),
    [
        ("bert", "mean"),
        pytest.param("bert", "cls", marks=pytest.mark.slow),
        *(pytest.param(name, "mean", marks=pytest.mark.slow) for name in FAST if name != "bert"),
    ],
)
def test_every_graph_has_the_mix_inside(tmp_path: Path, family: str, pooling: str) -> None:
    folder = saved(mixed(family, pooling), tmp_path)
    wanted = expected(family, pooling)
    traced = load(folder, "embedding")
    graphs = {
        "plain": trace(traced, 20),
        "fast": build_fast(traced.model, kind="embedding", opset=20),
        "unpadded": build_fast(traced.model, kind="embedding", opset=20, unpadded=True),
    }
    for name, graph in graphs.items():
        assert graph is not None
        write_model(graph, tmp_path / f"{name}.onnx")
        session = open_session(tmp_path / f"{name}.onnx", threads=1)
        feed = {item.name: batch()[item.name].numpy() for item in session.get_inputs()}
        (found,) = session.run(["sentence_embedding"], feed)
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("method", ["dynamic", "static", "smoothquant"])
def test_int8_keeps_the_mix(tmp_path: Path, method: Any) -> None:
    folder = saved(mixed("bert"), tmp_path / "model")
    graph = build_fast(load(folder, "embedding").model, kind="embedding", opset=20)
    assert graph is not None
    write_model(graph, tmp_path / "model.onnx")
    (tmp_path / "out").mkdir()
    feeds = [{name: value.numpy() for name, value in batch().items()}]
    info = quantize_onnx(tmp_path / "model.onnx", tmp_path / "out", Quantize(method=method), feeds=feeds)
    assert info["int8_matmuls"] > 0
    session = open_session(tmp_path / "out" / "model_quantized.onnx", threads=1)
    feed = {item.name: batch()[item.name].numpy() for item in session.get_inputs()}
    (found,) = session.run(["sentence_embedding"], feed)
    assert ((np.asarray(found) * expected("bert")).sum(axis=1) > 0.98).all()


def test_a_card_asks_for_it_and_one_without_layers_cannot() -> None:
    card = StudentCard(name="s", title="S", layers=2, vector_layers="mix")
    assert "vector_layers" in card.model_dump()
    assert "vector_layers" not in StudentCard(name="s", title="S", layers=2).model_dump(), "keys of others stay"
    with pytest.raises(ValueError, match="vector_layers: a `static` has no layers"):
        StudentCard(name="s", title="S", architecture="static", init="static", vector_layers="mix")
    with pytest.raises(ValueError, match="vector_layers: a pre-trained student is as its checkpoint"):
        StudentCard(name="s", title="S", init="pretrained", checkpoint="x", vector_layers="mix")
