"""The stages of a recipe: a module with a spec for each kind, and one line here. A recipe writes a stage as a mapping with one key: its
kind."""

from __future__ import annotations

from ..quantization import Quantize
from ..stage import StageSpec
from .augment import Augment
from .distill import Distill
from .export import Export
from .finetune import Finetune
from .general import General
from .masked_lm import MaskedLm
from .pretrain import Pretrain
from .prune import Prune
from .quantize_aware import QuantizeAware
from .relu import Relu
from .training import Losses, OnText, PerTask, Training
from .vocabulary import Vocabulary

# In the order in which a recipe's stages may come.
STAGE_SPECS: dict[str, type[StageSpec]] = {
    "pretrain": Pretrain,
    "finetune": Finetune,
    "masked_lm": MaskedLm,
    "general": General,
    "augment": Augment,
    "distill": Distill,
    "prune": Prune,
    "vocabulary": Vocabulary,
    "relu": Relu,
    "quantize_aware": QuantizeAware,
    "export": Export,
    "quantize": Quantize,
}

__all__ = [
    "STAGE_SPECS",
    "Augment",
    "Distill",
    "Export",
    "Finetune",
    "General",
    "Losses",
    "MaskedLm",
    "OnText",
    "PerTask",
    "Pretrain",
    "Prune",
    "QuantizeAware",
    "Relu",
    "Training",
    "Vocabulary",
]
