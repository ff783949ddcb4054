"""The bytes saved by a smaller vocabulary, as results report them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel

from compress.models.families import FAMILIES
from compress.pipeline.results.vocabulary import _WORDS, _dropped_bytes
from compress.quantize import quantize_onnx
from compress.spec.quantization import Quantize


@pytest.mark.parametrize(("settings", "row"), [({}, 32 + 4), ({"exclude": ("word_embeddings",)}, 4 * 32)])
def test_words_that_stay_in_fp32_save_bytes_of_fp32(
    settings: dict[str, Any], row: int, tiny_onnx: Callable[..., Path], tmp_path: Path
) -> None:
    """Whatever the precision of the position table."""
    spec = Quantize(method="dynamic", **settings)
    graph: Any = SimpleNamespace(info=quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, spec))
    assert _dropped_bytes(graph, spec, 32, 300, 120) == (300 - 120) * row


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_the_look_up_of_words_is_known_by_its_name(family: Any) -> None:
    if family.register_classes is not None:
        family.register_classes()
    config = AutoConfig.for_model(family.name)
    if not family.layerless:
        setattr(config, family.own_name("num_hidden_layers"), 1)
    with torch.device("meta"):
        model: Any = AutoModel.from_config(config)
    words = model.get_input_embeddings()
    (name,) = (name for name, module in model.named_modules() if module is words)
    assert _WORDS.search(f"{name}/Gather")
