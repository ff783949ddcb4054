"""Models of each family that compute like their int8 files, and texts for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from compress.export.fast import build_fast
from compress.models.fake_quant.classifier import FakeQuant
from compress.quantize.qat_params import quant_spec_of
from compress.quantize.ranges import calibrate
from compress.quantize.smoothing import Smoothing, find_factors, smooth
from compress.spec.quantization import Quantize

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
COUNTS_PADDING = ("roberta", "mpnet")  # positions depend on which tokens are padding
families = pytest.mark.parametrize("family", FAMILIES)
# 7 bits: with more, a CPU without VNNI may saturate a sum of two products, and then only its own arithmetic gives its outputs.
SPEC = Quantize(method="qat", reduce_range=True)
LENGTHS = (10, 7, 3, 10, 1, 5)


def texts(padding: int = 0) -> dict[str, np.ndarray]:
    """`padding`: the token id in the padding."""
    mask = (np.arange(10) < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids = np.random.default_rng(0).integers(5, 120, mask.shape)
    return {"input_ids": np.where(mask, ids, padding), "attention_mask": mask, "token_type_ids": (ids % 2) * mask}


def loaded(checkpoint: Path) -> Any:
    from transformers import AutoModelForSequenceClassification

    return AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()


def feed(model: Any, batch: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    from compress.models.features.named import accepted_inputs

    return {name: torch.from_numpy(batch[name]) for name in accepted_inputs(model)}


def quantizer(
    model: Any,
    spec: Quantize = SPEC,
    ranges: Any = "learned",
    gain: float = 1.0,
    pairs: bool = True,
    smoothed: bool = False,
) -> FakeQuant:
    """Return a quantizer with calibrated ranges."""
    graph = build_fast(model, pairs=pairs)
    assert graph is not None
    form, plan = quant_spec_of(graph, spec)
    scaling = find_factors(graph, plan, [texts()], spec) if smoothed else Smoothing()
    factors, channel_repeats = scaling.factors, scaling.channel_repeats
    if smoothed:
        assert factors
        graph = smooth(graph, factors, fold=spec.per_channel)
        form, _ = quant_spec_of(graph, spec)
    sources = tuple(dict.fromkeys(use.source for use in form.uses if use.source is not None))
    spans = calibrate(graph, sources, [texts()], method="minmax", percentile=100)
    ends = {name: (span.low, span.high) for name, span in spans.items()}
    return FakeQuant(form, ends, ranges=ranges, gain=gain, factors=factors, channel_repeats=channel_repeats)
