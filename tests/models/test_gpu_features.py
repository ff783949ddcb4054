"""Features of every family on a GPU that is not there: the CPU's numbers, and nobody waits for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pretend_cuda import CUDA, pretend_cuda, waits
from text_batches import batches

from compress.models.checkpoints import load_classifier
from compress.models.features import compute_features
from compress.models.predict import to_tensors

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
            with waits() as found:
                features = compute_features(model, to_tensors(batch, CUDA), WANTED)
            arrays = {name: values.cpu() for name, values in features.items()}
    assert found == {}
    for name in WANTED:
        mine, theirs = (values[name].numpy() for values in (arrays, expected))
        if name != "logits":  # what padding makes of itself may differ
            axis = 2 if mine.ndim == 4 else 1
            mine, theirs = (np.moveaxis(values, axis, 1)[real] for values in (mine, theirs))
        if name.startswith("scores"):
            mine, theirs = (np.where(np.isfinite(values), values, 0) for values in (mine, theirs))
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5, err_msg=name)  # fp32, sums in another order
