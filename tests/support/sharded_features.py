"""The features of a model and of its sharded copy, compared in each of the processes that share it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
)

from compress.models.features.named import compute_features
from compress.processes import ranks
from compress.training import make_accelerator, sharding
from compress.training.sharded_tensors import full_tensor, local_part


def _family(name: str) -> Any:
    """Return a classifier with three layers and two classes; its odd number of words cannot be halved between two processes."""
    shape: dict[str, Any] = {"vocab_size": 13, "max_position_embeddings": 16, "num_labels": 2}
    wide: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    torch.manual_seed(3)
    if name == "distilbert":
        config = DistilBertConfig(dim=16, n_layers=3, n_heads=2, hidden_dim=32, **shape)
        return DistilBertForSequenceClassification(config)
    if name == "bert":
        return BertForSequenceClassification(BertConfig(**shape, **wide))
    groups = {"albert": 1, "albert of three blocks": 3}[name]
    return AlbertForSequenceClassification(AlbertConfig(**shape, **wide, embedding_size=8, num_hidden_groups=groups))


WANTED = (["logits"], ["embeddings"], ["hidden[1]", "scores[0]"], ["values[2]"], ["hidden[-1]", "words"])


def features(folder: Path, *, family: str, headed: bool) -> None:
    """Compare the features and gradients of a model and of its sharded copy, without dropout."""
    model = _family(family).eval()
    model = model if headed else model.base_model
    split: Any = sharding.shard_model(model, lambda placed: placed, make_accelerator("fp32").device)
    held = sum(local_part(parameter).numel() for parameter in split.parameters())
    every, count = ranks.gather(held), ranks.count()
    assert sum(every) == sum(parameter.numel() for parameter in model.parameters())
    assert max(every) < 1.3 * sum(every) / count
    ids = torch.randint(5, 13, (2 * count, 9), generator=torch.Generator().manual_seed(1))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    mine = {name: values[ranks.rank() :: count] for name, values in batch.items()}
    for wanted in WANTED[0 if headed else 1 :]:
        model.zero_grad(set_to_none=True)
        split.zero_grad(set_to_none=True)
        _read_out(model, batch, wanted).backward()
        for half in (0, 1):  # two forward passes before a step
            _read_out(split, {name: values[half : half + 1] for name, values in mine.items()}, wanted).backward()
        theirs = dict(split.named_parameters())
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                gathered = full_tensor(theirs[name].grad)
                torch.testing.assert_close(gathered, parameter.grad, rtol=1e-4, atol=1e-5, msg=f"{wanted}: {name}")
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        torch.testing.assert_close(sharding.clip(list(split.parameters()), 0.5), norm)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for name, parameter in model.named_parameters():
            assert (theirs[name].grad is None) == (parameter.grad is None), f"{wanted}: {name}"
            if parameter.grad is not None:
                torch.testing.assert_close(
                    full_tensor(theirs[name].grad), parameter.grad, rtol=1e-4, atol=1e-5, msg=name
                )
    with torch.no_grad():
        for parameter in split.parameters():
            local_part(parameter).add_(1.0)
    raised = copy.deepcopy(model)
    sharding.gather(split, raised)
    for after, before in zip(raised.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(after, before + 1.0)


def _read_out(model: Any, batch: dict[str, Tensor], wanted: list[str]) -> Tensor:
    """Return a sum over the batch's examples of what the model computed."""
    outputs = compute_features(model, batch, wanted)
    words = outputs.pop("words", None)
    total = torch.stack([value.square().sum() for value in outputs.values()]).sum()
    return (
        total
        if words is None
        else nn.functional.linear(outputs["hidden[-1]"][..., : words.shape[1]], words).logsumexp(-1).sum() + total
    )
