"""Losses: pure functions of tensors, named after their mathematics."""

from .attention_mse import attention_mse_loss
from .block_spread import block_spread_loss
from .hard_label import hard_label_loss
from .hidden_cosine import hidden_cosine_loss
from .hidden_mse import hidden_mse_loss
from .masked_soft_target import masked_soft_target_loss
from .next_sentence import next_sentence_loss
from .relation_kl import relation_kl_loss
from .sentence_order import sentence_order_loss
from .soft_cross_entropy import soft_cross_entropy_loss
from .soft_target import soft_target_loss
from .squared_error import squared_error_loss

LOSSES = {
    "soft_target": soft_target_loss,
    "hard_label": hard_label_loss,
    "hidden_cosine": hidden_cosine_loss,
    "squared_error": squared_error_loss,
    "soft_cross_entropy": soft_cross_entropy_loss,
    "hidden_mse": hidden_mse_loss,
    "attention_mse": attention_mse_loss,
    "relation_kl": relation_kl_loss,
    "block_spread": block_spread_loss,
    "sentence_order": sentence_order_loss,
    "next_sentence": next_sentence_loss,
    "masked_soft_target": masked_soft_target_loss,
}

__all__ = [
    "LOSSES",
    "attention_mse_loss",
    "block_spread_loss",
    "hard_label_loss",
    "hidden_cosine_loss",
    "hidden_mse_loss",
    "masked_soft_target_loss",
    "next_sentence_loss",
    "relation_kl_loss",
    "sentence_order_loss",
    "soft_cross_entropy_loss",
    "soft_target_loss",
    "squared_error_loss",
]
