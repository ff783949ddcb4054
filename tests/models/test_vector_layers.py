"""Vectors of other layers than the last: what a card may say, what is computed, and what the graphs give."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_encoders import encoder

from compress.errors import CompressError
from compress.export.fast import build_fast
from compress.export.tracing import load, trace
from compress.graphs import write_model
from compress.models.cards import TeacherCard
from compress.models.checkpoints import load_classifier
from compress.models.dimensions import read_config
from compress.models.families import FAMILIES
from compress.models.features import compute_features
from compress.models.vector_layers import with_layers
from compress.quantize import quantize_onnx
from compress.sessions import open_session
from compress.spec.quantization import Quantize

CARD: dict[str, Any] = {"name": "t", "title": "T", "licence": "x", "checkpoint": {"path": "dir"}}
LENGTH, SHORT, COUNT = 12, 5, 2
FAST = [name for name, family in FAMILIES.items() if family.fast and not family.layerless]


def batch() -> dict[str, torch.Tensor]:
    ids, mask = torch.randint(6, 90, (2, LENGTH), generator=torch.Generator().manual_seed(3)), torch.ones(2, LENGTH)
    mask[1, SHORT:] = 0
    return {"input_ids": ids, "attention_mask": mask.long(), "token_type_ids": torch.zeros_like(ids)}


def saved(folder: Path, family: str, pooling: str = "mean", layers: int | str = "last") -> Path:
    model = copy.copy(encoder(family, pooling))
    model.config = copy.deepcopy(model.config)
    for name, value in with_layers(model.config.to_dict(), layers, "teacher t").items():
        setattr(model.config, name, value)
    model.save_pretrained(folder)
    return folder


def loaded(folder: Path, **more: Any) -> Any:
    model: Any = load_classifier(folder, kind="embedding", labels=(), trained=True, **more)
    return model.eval()


def vectors(model: Any) -> np.ndarray:
    with torch.no_grad():
        return compute_features(model, batch(), ("logits",))["logits"].numpy()


def expected(family: str, pooling: str, places: list[int]) -> np.ndarray:
    """By hand, of transformers' states of these layers."""
    model, inputs, found = encoder(family, pooling), batch(), []
    names = [name for name in inputs if name != "token_type_ids" or family not in ("distilbert", "mpnet", "roberta")]
    for row, length in enumerate((LENGTH, SHORT)):
        with torch.no_grad():
            one = {name: inputs[name][row : row + 1, :length] for name in names}
            states: Any = model(**one, output_hidden_states=True).hidden_states
        mean = np.mean([states[place][0].numpy() for place in places], axis=0)
        vector = mean[0] if pooling == "cls" else mean.mean(axis=0)
        found.append(vector / np.linalg.norm(vector))
    return np.stack(found)


@pytest.mark.parametrize("layers", ["last", 1, 12, "last-2", "last-12"])
def test_a_card_names_its_layers(layers: int | str) -> None:
    card = TeacherCard(**CARD, layers=layers)
    assert ("layers" in card.model_dump()) == (layers != "last"), "keys of cards without it stay"


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("mix", "has no mix to learn; a student has one"),
        (0, "expected the number of a layer, from 1 on; found 0"),
        ("last-1", "or `last-N` with N at least 2"),
        ("4", "found '4'"),
        ("first", "found 'first'"),
    ],
)
def test_other_words_are_refused(layers: int | str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TeacherCard(**CARD, layers=layers)


def test_random_weights_have_no_layer_to_choose() -> None:
    sizes = {"layers": 4, "hidden": 32, "heads": 2, "intermediate": 64}
    with pytest.raises(ValueError, match="of random weights none is better than another"):
        TeacherCard(name="t", title="T", licence="x", random=sizes, layers=2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "layers", "message"),
    [
        (
            {"model_type": "bert", "num_hidden_layers": 4},
            5,
            "teacher t: layers: found 5, and the checkpoint has 4 layers",
        ),
        ({"model_type": "bert", "num_hidden_layers": 4}, "last-5", "found last-5, and the checkpoint has 4 layers"),
        (
            {"model_type": "bert", "num_hidden_layers": 2, "sentence_layers": 3},
            "last",
            "teacher t: config.json: sentence_layers: expected at most its 2 layers, found 3",
        ),
        (
            {"model_type": "bert", "num_hidden_layers": 2, "sentence_layers": [0.5, 0.5]},
            "last",
            "sentence_layers: expected a weight for the embeddings and for each of its 2 layers, found 2",
        ),
        ({"model_type": "xlnet", "n_layer": 4}, 2, "the layers of a XLNet cannot be taken apart here"),
        ({"model_type": "modernbert", "num_hidden_layers": 4}, "last-2", "the layers of a ModernBERT cannot be taken"),
        ({"model_type": "albert", "num_hidden_layers": 4, "num_hidden_groups": 2}, 2, "share weights in groups"),
    ],
)
def test_layers_that_cannot_be_taken_are_refused(config: dict[str, Any], layers: int | str, message: str) -> None:
    with pytest.raises(CompressError, match=message):
        with_layers(config, layers, "teacher t")


def test_one_layer_of_an_encoder_of_several_is_no_mean() -> None:
    config = {"model_type": "bert", "num_hidden_layers": 6, "sentence_layers": 4}
    assert with_layers(config, 2, "teacher t") == {"model_type": "bert", "num_hidden_layers": 2}


@pytest.mark.parametrize("family", FAST)
def test_one_layer_is_an_encoder_of_so_many(tmp_path: Path, family: str) -> None:
    whole = saved(tmp_path, family)
    config = with_layers(read_config(whole), 2, "teacher t")
    model = loaded(whole, config=config)
    assert model.config.num_hidden_layers == 2 and model.num_parameters() <= encoder(family).num_parameters()
    np.testing.assert_allclose(vectors(model), expected(family, "mean", [2]), rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("family", "pooling"),
    [
        *(("bert", "mean"), ("bert", "cls")),
        *(pytest.param(name, "mean", marks=pytest.mark.slow) for name in FAST if name != "bert"),
    ],
)
def test_the_mean_of_the_last_layers_in_torch_and_in_every_graph(tmp_path: Path, family: str, pooling: str) -> None:
    folder = saved(tmp_path, family, pooling, f"last-{COUNT}")
    assert read_config(folder)["sentence_layers"] == COUNT
    wanted = expected(family, pooling, [-1, -2])
    np.testing.assert_allclose(vectors(loaded(folder)), wanted, rtol=0, atol=2e-6)
    traced = load(folder, "embedding")
    graphs = {
        **({"plain": trace(traced, 20)} if pooling == "mean" else {}),
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
def test_int8_keeps_the_mean_of_the_layers(tmp_path: Path, method: Any) -> None:
    folder = saved(tmp_path / "model", "bert", "mean", "last-3")
    graph = build_fast(load(folder, "embedding").model, kind="embedding", opset=20)
    assert graph is not None
    write_model(graph, tmp_path / "model.onnx")
    (tmp_path / "out").mkdir()
    feeds = [{name: value.numpy() for name, value in batch().items()}]
    info = quantize_onnx(tmp_path / "model.onnx", tmp_path / "out", Quantize(method=method), feeds=feeds)
    assert info["int8_matmuls"] > 0
    session = open_session(tmp_path / "out" / "model_quantized.onnx", threads=1)
    feed = {item.name: batch()[item.name].numpy() for item in session.get_inputs()}
    states, found = (np.asarray(each) for each in session.run(["last_hidden_state", "sentence_embedding"], feed))
    assert ((found * expected("bert", "mean", [-1, -2, -3])).sum(axis=1) > 0.98).all()
    mean = states[0].mean(axis=0)
    np.testing.assert_allclose(mean / np.linalg.norm(mean), found[0], rtol=0, atol=1e-5)
