"""Families that are traced in another form, because transformers' own cannot be exported, or only to a slow graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from .deberta import DebertaForm
from .xlnet import XLNetForm

# Family name -> its classifier as a module that takes [batch, length] tensors, like the graph, and returns logits, all
# outputs side by side.
FORMS: dict[str, Callable[[Any], nn.Module]] = {"deberta-v2": DebertaForm, "xlnet": XLNetForm}
