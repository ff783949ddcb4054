"""Losses: pure functions of tensors, named after their mathematics."""

from .hard_label import hard_label_loss
from .hidden_cosine import hidden_cosine_loss
from .soft_target import soft_target_loss
from .squared_error import squared_error_loss

LOSSES = {
    "soft_target": soft_target_loss,
    "hard_label": hard_label_loss,
    "hidden_cosine": hidden_cosine_loss,
    "squared_error": squared_error_loss,
}

__all__ = ["LOSSES", "hard_label_loss", "hidden_cosine_loss", "soft_target_loss", "squared_error_loss"]
