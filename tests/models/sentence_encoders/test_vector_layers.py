"""Sentence embeddings from layers other than the last: what a card may set, the vectors, and the graphs."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from default_suite import slow
from layered_vectors import FAST, check_graphs, expected, int8_outputs, vectors
from sentence_encoders import encoder

from compress.errors import CompressError
from compress.models.cards import TeacherCard
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import read_config
from compress.models.sentence_encoders.vector_layers import with_layers

CARD: dict[str, Any] = {"name": "t", "title": "T", "licence": "x", "checkpoint": {"path": "dir"}}
COUNT = 2


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


def mean_of(*places: int) -> dict[int, float]:
    return dict.fromkeys(places, 1 / len(places))


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
    with pytest.raises(ValueError, match="with random weights no layer is better than another"):
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
    np.testing.assert_allclose(vectors(model), expected(family, "mean", mean_of(2)), rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("family", "pooling"),
    [
        ("bert", "cls"),
        *slow(*((name, "mean") for name in FAST)),
    ],
)
def test_the_mean_of_the_last_layers_in_torch_and_in_every_graph(tmp_path: Path, family: str, pooling: str) -> None:
    folder = saved(tmp_path, family, pooling, f"last-{COUNT}")
    assert read_config(folder)["sentence_layers"] == COUNT
    wanted = expected(family, pooling, mean_of(-1, -2))
    np.testing.assert_allclose(vectors(loaded(folder)), wanted, rtol=0, atol=2e-6)
    check_graphs(folder, tmp_path, wanted, plain=pooling == "mean")


@pytest.mark.parametrize("method", ["dynamic", "static", "smoothquant"])
def test_int8_keeps_the_mean_of_the_layers(tmp_path: Path, method: Any) -> None:
    folder = saved(tmp_path / "model", "bert", "mean", "last-3")
    states, embeddings = int8_outputs(folder, tmp_path, method)
    assert ((embeddings * expected("bert", "mean", mean_of(-1, -2, -3))).sum(axis=1) > 0.98).all()
    mean = states[0].mean(axis=0)
    np.testing.assert_allclose(mean / np.linalg.norm(mean), embeddings[0], rtol=0, atol=1e-5)
