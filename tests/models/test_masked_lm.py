"""Masked language models: found, loaded or added to an encoder; the head is read only where needed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from compress.errors import CompressError
from compress.models.masked_lm import (
    copy_head,
    decoder,
    has_masked_lm_head,
    load_masked_lm,
    masked_states,
    masked_text_loss,
    new_masked_lm_head,
)

FAMILIES = ("bert", "distilbert", "roberta", "albert", "mpnet", "electra", "ernie")
VOCABULARY = 120


@pytest.fixture
def masked_lm(tiny_checkpoint: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a function: family -> a checkpoint with a masked-LM head, every weight random."""

    def make(family: str) -> Path:
        from transformers import AutoConfig, AutoModelForMaskedLM

        torch.manual_seed(3)
        model = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(tiny_checkpoint(family)))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        model.save_pretrained(tmp_path / family)
        return tmp_path / family

    return make


def batch(seed: int = 0) -> dict[str, Tensor]:
    """Return two texts, one padded, with labels at three positions of the first and one of the second."""
    rng = np.random.default_rng(seed)
    ids, labels = rng.integers(5, VOCABULARY, (2, 9)), np.full((2, 9), -100)
    mask = np.array([[1] * 9, [1] * 6 + [0] * 3])
    labels[0, [1, 4, 7]], labels[1, 3] = rng.integers(5, VOCABULARY, 3), rng.integers(5, VOCABULARY)
    arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids), "labels": labels}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def whole_logits(model: Any, inputs: dict[str, Tensor]) -> np.ndarray:
    """Return transformers' own logits at every position: [batch, length, vocabulary]."""
    with torch.no_grad():
        return model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits.numpy()


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return float(-log_p[np.arange(len(labels)), labels].mean())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_is_found_in_a_checkpoint_that_has_one(
    masked_lm: Callable[[str], Path], tiny_checkpoint: Callable[[str], Path], family: str
):
    assert has_masked_lm_head(masked_lm(family))
    assert not has_masked_lm_head(tiny_checkpoint(family))


def test_electras_discriminator_counts_as_headless(tiny_checkpoint: Callable[[str], Path]):
    assert not has_masked_lm_head(tiny_checkpoint("electra"))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_head_at_some_positions_is_transformers_own(masked_lm: Callable[[str], Path], family: str):
    model: Any = load_masked_lm(masked_lm(family))
    inputs = batch()
    chosen = inputs["labels"] != -100
    with torch.no_grad():
        mine = decoder(model)(masked_states(model, inputs, chosen.flatten().nonzero()[:, 0])).numpy()
    assert not model.training
    np.testing.assert_allclose(mine, whole_logits(model, inputs)[chosen.numpy()], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_the_mean_cross_entropy_of_masked_positions(masked_lm: Callable[[str], Path], family: str):
    model: Any = load_masked_lm(masked_lm(family))
    inputs = batch()
    labels = inputs["labels"].numpy()
    expected = cross_entropy(whole_logits(model, inputs)[labels != -100], labels[labels != -100])
    assert masked_text_loss(model, inputs).item() == pytest.approx(expected, rel=1e-5)


def test_the_vocabulary_is_scored_at_masked_positions_alone(masked_lm: Callable[[str], Path]):
    model: Any = load_masked_lm(masked_lm("bert"))
    shapes: list[tuple[int, ...]] = []
    decoder(model).register_forward_hook(lambda module, inputs, output: shapes.append(tuple(output.shape)))
    masked_text_loss(model, batch())
    assert shapes == [(4, VOCABULARY)]


def test_a_batch_without_labels_costs_nothing(masked_lm: Callable[[str], Path]):
    inputs = batch()
    inputs["labels"].fill_(-100)
    loss = masked_text_loss(load_masked_lm(masked_lm("bert")), inputs)
    loss.backward()
    assert loss.item() == 0.0


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "mpnet"])
def test_a_new_head_starts_as_the_normalised_hidden_state(tiny_checkpoint: Callable[[str], Path], family: str):
    model: Any = new_masked_lm_head(tiny_checkpoint(family)).eval()
    inputs = batch()
    chosen = inputs["labels"] != -100
    with torch.no_grad():
        mine = masked_states(model, inputs, chosen.flatten().nonzero()[:, 0])
        hidden = model.base_model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        hidden = hidden.last_hidden_state[chosen].numpy()
    centred = hidden - hidden.mean(-1, keepdims=True)
    normal = centred / centred.std(-1, keepdims=True)
    cosine = (mine.numpy() * normal).sum(-1) / np.linalg.norm(mine, axis=-1) / np.linalg.norm(normal, axis=-1)
    assert cosine.min() > 0.999


@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_head_is_tied_to_the_embeddings_and_undecided_at_first(
    tiny_checkpoint: Callable[[str], Path], family: str
):
    model: Any = new_masked_lm_head(tiny_checkpoint(family))
    assert model.training
    assert decoder(model).weight is model.get_input_embeddings().weight
    with torch.no_grad():
        loss = masked_text_loss(model.eval(), batch()).item()
    assert loss == pytest.approx(math.log(VOCABULARY), abs=1.5)


def test_the_encoder_under_a_new_head_is_the_checkpoints(tiny_checkpoint: Callable[[str], Path]):
    model: Any = new_masked_lm_head(tiny_checkpoint("bert"))
    stored = load_file(tiny_checkpoint("bert") / "model.safetensors")
    body = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("bert.")}
    assert len(body) > 30
    assert all(torch.equal(tensor, stored[name]) for name, tensor in body.items())


def test_a_trained_new_head_is_saved_and_loaded(tiny_checkpoint: Callable[[str], Path], tmp_path: Path):
    torch.manual_seed(0)
    model: Any = new_masked_lm_head(tiny_checkpoint("bert"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        loss = masked_text_loss(model, batch())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    model.save_pretrained(tmp_path)
    assert has_masked_lm_head(tmp_path)
    np.testing.assert_array_equal(whole_logits(load_masked_lm(tmp_path), batch()), whole_logits(model.eval(), batch()))


def test_what_is_missing_is_said_in_one_line(
    masked_lm: Callable[[str], Path], tiny_checkpoint: Callable[[str], Path], tmp_path: Path
):
    with pytest.raises(CompressError, match="holds no masked-LM head"):
        load_masked_lm(tiny_checkpoint("bert"))
    folder = masked_lm("bert")
    weights = load_file(folder / "model.safetensors")
    lost = "bert.encoder.layer.1.output.dense.weight"
    weights.pop(lost)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for load in (load_masked_lm, new_masked_lm_head):
        with pytest.raises(CompressError) as caught:
            load(folder)
        assert lost in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_bias_under_either_of_its_names_is_enough(masked_lm: Callable[[str], Path]):
    """Older checkpoints contain only `cls.predictions.bias`, and LayerNorm's weights as gamma and beta."""
    folder = masked_lm("bert")
    expected = whole_logits(load_masked_lm(folder), batch())
    weights = load_file(folder / "model.safetensors")
    bias = weights.pop("cls.predictions.decoder.bias", None)
    weights["cls.predictions.bias"] = bias if bias is not None else weights["cls.predictions.bias"]
    weights.pop("cls.predictions.decoder.weight", None)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor.clone()
        for name, tensor in weights.items()
    }
    save_file(old, folder / "model.safetensors", metadata={"format": "pt"})
    np.testing.assert_array_equal(whole_logits(load_masked_lm(folder), batch()), expected)


def test_a_config_that_transformers_refuses_is_said_in_one_line(masked_lm: Callable[[str], Path]):
    path = masked_lm("bert") / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "hidden_size": 33}))
    with pytest.raises(CompressError) as caught:
        load_masked_lm(path.parent)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tied", [True, False])
def test_a_copied_head_leaves_the_table_that_a_decoder_is_tied_to(tiny_checkpoint: Callable[[str], Path], tied: bool):
    """The teacher has its own output matrix; the student's is tied to its word table, or not."""
    from transformers import AutoConfig, AutoModelForMaskedLM

    folder = tiny_checkpoint("bert")
    teacher: Any = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(folder, tie_word_embeddings=False))
    student: Any = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(folder, tie_word_embeddings=tied))
    assert (decoder(student).weight is student.get_input_embeddings().weight) is tied
    with torch.no_grad():
        for parameter in teacher.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    table = student.get_input_embeddings().weight.detach().clone()
    copy_head(teacher, student)
    assert torch.equal(student.get_input_embeddings().weight, table)
    assert torch.equal(decoder(student).weight, table if tied else decoder(teacher).weight)
    assert torch.equal(decoder(student).bias, decoder(teacher).bias)
    names = ("dense.weight", "dense.bias", "LayerNorm.weight", "LayerNorm.bias")
    mine, theirs = (model.cls.predictions.transform for model in (student, teacher))
    assert all(torch.equal(mine.get_parameter(name), theirs.get_parameter(name)) for name in names)
