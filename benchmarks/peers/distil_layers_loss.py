"""TinyBERT's losses on embeddings, hidden states and attention scores, for libraries without such losses that ignore padding."""

from __future__ import annotations

from typing import Any

import torch
from distil_parts import PAIRS
from torch import Tensor


def layers_loss(student: Any, teacher: Any, attention_mask: Tensor) -> Tensor:
    mask = attention_mask.float()
    pairs = mask[:, :, None] * mask[:, None, :]
    losses = []
    for mine, theirs in ((0, 0), *PAIRS):
        square = (student.hidden_states[mine] - teacher.hidden_states[theirs]).square().mean(-1)
        losses.append((square * mask).sum() / mask.sum())
    for mine, theirs in PAIRS:
        square = (student.attentions[mine - 1] - teacher.attentions[theirs - 1]).square().mean(1)
        losses.append(((square * pairs).sum((1, 2)) / pairs.sum((1, 2))).mean())
    return torch.stack(losses).sum()
