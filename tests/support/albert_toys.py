"""Small BERTs to convert to ALBERT, and the converted models."""

from __future__ import annotations

from typing import Any

import torch
from text_batches import batches
from transformers import BertConfig, BertForSequenceClassification

from compress.models.cards import StudentCard
from compress.models.dimensions import Dimensions, dimensions
from compress.models.students import build_student, student_dimensions

EMBEDDING = 8


def bert(*, layers: int = 4, alike: bool = False, rank: int | None = None, seed: int = 3, **fields: Any) -> Any:
    """Return a BERT classifier, width 32 with 4 heads. `alike`: all layers have the same weights; `rank`: the embedding tables
    span this many directions beside the mean of each row."""
    torch.manual_seed(seed)
    shape = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": layers, "num_attention_heads": 4}
    shape |= {"intermediate_size": 48, "max_position_embeddings": 24, "num_labels": 3, **fields}
    model: Any = BertForSequenceClassification(BertConfig.from_dict(shape)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # larger than transformers' initial weights, so that every part matters
            parameter.add_(torch.randn_like(parameter) * 0.1)
        if rank is not None:
            _flatten(model.bert.embeddings, rank)
        first = model.bert.encoder.layer[0]
        for layer in model.bert.encoder.layer[1:] if alike else ():
            layer.load_state_dict(first.state_dict())
    return model


def _flatten(embeddings: Any, rank: int) -> None:
    subspace = torch.linalg.qr(torch.randn(32, rank))[0]
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        table = getattr(embeddings, name).weight
        table.copy_(3 * table @ subspace @ subspace.T + 0.1 * torch.randn(len(table), 1))


def card(layers: int = 4, *, init: str = "convert", **albert: Any) -> StudentCard:
    fields: dict[str, Any] = {"name": "s", "title": "S", "architecture": "albert", "layers": layers, "init": init}
    fields["albert"] = {"embedding": EMBEDDING, **albert}
    return StudentCard(**fields)


def sizes(student: StudentCard, teacher: Any) -> Dimensions:
    return student_dimensions(student, dimensions(teacher.config.to_dict(), classes=3))


def converted(student: StudentCard, teacher: Any) -> Any:
    return build_student(student, teacher, sizes(student, teacher), batches(1, 8)).eval()


def text(seed: int = 9) -> dict[str, Any]:
    return {name: torch.from_numpy(array) for name, array in batches(seed, 1)[0].items()}


def blocks(model: Any) -> list[Any]:
    """Return the `AlbertLayer` of each group."""
    return [group.albert_layers[0] for group in model.base_model.encoder.albert_layer_groups]
