"""A stage's dropout does not affect other stages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, ModernBertConfig, XLNetConfig

from compress.models.checkpoints.folders import load_classifier
from compress.models.features.named import compute_features
from compress.pipeline.training.teacher_targets import set_dropout

LABELS = ("no", "maybe", "yes")
BATCH = {"input_ids": torch.arange(5, 17).reshape(2, 6), "attention_mask": torch.ones(2, 6, dtype=torch.int64)}
BATCH["token_type_ids"] = torch.zeros(2, 6, dtype=torch.int64)


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie"])
def test_it_is_on_in_the_model_and_not_in_what_is_saved(family: str, tiny_checkpoint: Callable[[str], Path]):
    model: Any = load_classifier(tiny_checkpoint(family), kind="classification", labels=LABELS, trained=True).train()
    before = model.config.to_dict()
    set_dropout(model, 0.0)
    first, second = (compute_features(model, BATCH, ["logits"])["logits"] for _ in range(2))
    assert torch.equal(first, second)
    set_dropout(model, 0.5)
    assert {module.p for module in model.modules() if isinstance(module, nn.Dropout)} == {0.5}
    assert not torch.equal(first, compute_features(model, BATCH, ["logits"])["logits"])
    assert model.config.to_dict() == before


def test_none_leaves_the_model_s_own(tiny_checkpoint: Callable[[str], Path]):
    model: Any = load_classifier(tiny_checkpoint("bert"), kind="classification", labels=LABELS, trained=True)
    before = [module.p for module in model.modules() if isinstance(module, nn.Dropout)]
    set_dropout(model, None)
    assert [module.p for module in model.modules() if isinstance(module, nn.Dropout)] == before


def _modernbert(rate: float) -> Any:
    size: dict[str, Any] = {
        "vocab_size": 20,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    return ModernBertConfig(**size, pad_token_id=0, attention_dropout=rate, embedding_dropout=rate, mlp_dropout=rate)


def _xlnet(rate: float) -> Any:
    return XLNetConfig(
        vocab_size=20, d_model=8, n_layer=2, n_head=2, d_inner=8, dropout=rate, summary_last_dropout=rate
    )


@pytest.mark.parametrize("config", [_modernbert, _xlnet])
def test_it_is_on_where_the_class_has_no_dropout_at_a_rate_of_0(config: Callable[[float], Any]):
    names = []
    for rate in (0.0, 0.1):
        model: Any = AutoModelForSequenceClassification.from_config(config(rate))
        set_dropout(model, 0.5)
        dropouts = {name: module.p for name, module in model.named_modules() if isinstance(module, nn.Dropout)}
        assert {*dropouts.values()} == {0.5}
        names.append(dropouts.keys())
    assert names[0] == names[1]
