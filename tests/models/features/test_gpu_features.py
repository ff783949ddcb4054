"""Features of every family on a simulated GPU: the CPU's numbers, without synchronization."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from family_teachers import classifier_of
from plain_teachers import plain_classifier
from pretend_cuda import CUDA, pretend_cuda, waits
from text_batches import batches

from compress.models.checkpoints.folders import load_classifier
from compress.models.features.named import compute_features, model_inputs
from compress.models.features.predict import to_tensors

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet")
WANTED = ("logits", "embeddings", "hidden[-1]", "scores[1]", "queries[0]", "values[1]")


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_they_are_those_of_the_cpu(tiny_checkpoint: Callable[[str], Path], family: str, padded: bool) -> None:
    model = load_classifier(tiny_checkpoint(family), kind="classification", labels=("a", "b", "c"), trained=True).eval()
    (batch,) = batches(3, 1)
    if not padded:
        batch = {name: values[:1] for name, values in batch.items()}
        assert batch["attention_mask"].all()
    real = batch["attention_mask"].astype(bool)
    with torch.no_grad():
        expected = compute_features(model, to_tensors(batch, torch.device("cpu")), WANTED)
        with pretend_cuda():
            model.to(CUDA)
            with waits() as synchronizations:
                features = compute_features(model, to_tensors(batch, CUDA), WANTED)
            arrays = {name: values.cpu() for name, values in features.items()}
    assert synchronizations == {}
    for name in WANTED:
        mine, theirs = (values[name].numpy() for values in (arrays, expected))
        if name != "logits":  # the padding's own states may differ
            axis = 2 if mine.ndim == 4 else 1
            mine, theirs = (np.moveaxis(values, axis, 1)[real] for values in (mine, theirs))
        if name.startswith("scores"):
            mine, theirs = (np.where(np.isfinite(values), values, 0) for values in (mine, theirs))
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5, err_msg=name)  # fp32, sums in another order


@pytest.mark.parametrize("padded", [True, False])
def test_those_of_local_layers_are_those_of_the_cpu(padded: bool) -> None:
    """The window is 3 tokens on each side, shorter than the texts."""
    model = classifier_of("modernbert", vocab_size=200, local_attention=6)
    synchronizations = _same_logits(model, padded)
    assert synchronizations == {}


@pytest.mark.parametrize("padded", [True, False])
def test_a_mean_of_tokens_leaves_padding_out(padded: bool) -> None:
    """Like the published ModernBERT, whose head takes only the batch's mask. Checking whether there is padding synchronizes."""
    synchronizations = _same_logits(classifier_of("modernbert", vocab_size=200, classifier_pooling="mean"), padded)
    assert bool(synchronizations) == padded


def test_deberta_takes_no_ready_mask_and_has_its_own() -> None:
    _same_logits(plain_classifier("deberta-v2", words=200), padded=True)


def test_xlnet_is_given_the_mask_of_the_batch() -> None:
    (batch,) = batches(3, 1)
    with pretend_cuda():
        inputs = model_inputs(plain_classifier("xlnet"), to_tensors(batch, CUDA))
    assert inputs["attention_mask"].shape == batch["attention_mask"].shape


def _same_logits(model: torch.nn.Module, padded: bool) -> dict[str, int]:
    """Compare the GPU's logits with the CPU's, and return the number of synchronizations by place."""
    (batch,) = batches(3, 1)
    batch = batch if padded else {name: values[:1] for name, values in batch.items()}
    with torch.no_grad():
        expected = compute_features(model, to_tensors(batch, torch.device("cpu")), ("logits",))["logits"]
        with pretend_cuda():
            model.to(CUDA)
            with waits() as synchronizations:
                logits = compute_features(model, to_tensors(batch, CUDA), ("logits",))["logits"]
            mine = logits.cpu()
    torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5)  # fp32, sums in another order
    return dict(synchronizations)
