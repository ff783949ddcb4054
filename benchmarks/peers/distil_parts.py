"""Code that a user of each library writes in the same way: tokenization, the two models, and attention scores before softmax.

transformers returns attention after softmax; TinyBERT compares it before (Jiao et al. 2020, arXiv:1909.10351, eq. 7).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
)
from transformers.masking_utils import eager_mask

PAIRS = ((1, 2), (2, 4), (3, 6))  # student layer and teacher layer, from 1
OUTPUTS = {
    "logits": {},
    "layers": {"output_hidden_states": True, "output_attentions": True},
}  # what a forward returns


def models(case: str, job: dict[str, Any]) -> tuple[Any, Any]:
    """Return teacher and student; for layers both can return their attention scores."""
    options = {"attn_implementation": "scores"} if case == "layers" else {}
    teacher, student = (
        AutoModelForSequenceClassification.from_pretrained(job[name], **options) for name in ("teacher", "student")
    )
    return teacher.eval(), student.train()


def tokens(pad: str, job: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """Return the tokenizer and the examples, padded only if `pad` is the maximum length of a text."""
    tokenizer = AutoTokenizer.from_pretrained(job["teacher"])
    labels = AutoModelForSequenceClassification.from_pretrained(job["student"]).config.label2id
    rows = [json.loads(line) for line in Path(job["train"]).read_text(encoding="utf-8").splitlines()]
    padding = "max_length" if pad == "128" else False
    encoding = tokenizer([row["text"] for row in rows], truncation=True, max_length=128, padding=padding)
    return tokenizer, [
        {**{name: encoding[name][i] for name in encoding}, "labels": labels[row["label"]]} for i, row in enumerate(rows)
    ]


def loader(pad: str, job: dict[str, Any]) -> DataLoader[Any]:
    """Return batches in random order, or the `batches` of the job."""
    tokenizer, rows = tokens(pad, job)
    collate = DataCollatorWithPadding(tokenizer)
    if pad == "same":
        return DataLoader(rows, batch_sampler=job["batches"], collate_fn=collate)  # type: ignore[arg-type]
    return DataLoader(rows, batch_size=job["batch_size"], shuffle=True, collate_fn=collate)  # type: ignore[arg-type]


def attend_with_scores(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float = 1.0,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    scores = torch.matmul(query, key.transpose(2, 3)) * scaling
    weights = torch.softmax(scores if attention_mask is None else scores + attention_mask, dim=-1)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), scores


AttentionInterface.register("scores", attend_with_scores)
AttentionMaskInterface.register("scores", eager_mask)
