"""Families whose models are traced in another form, because transformers' own makes no graph, or a slow one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from .deberta import DebertaForm
from .xlnet import XLNetForm

# The name of a family -> its classifier as a module that takes [batch, length] tensors, as the graph does, and gives logits,
# all outputs side by side.
FORMS: dict[str, Callable[[Any], nn.Module]] = {"deberta-v2": DebertaForm, "xlnet": XLNetForm}
