"""The kinds of stages: one module and one line here for each.

Those that a recipe names are in the order in which its stages may come, that of `spec.stages.STAGE_SPECS`; the others are next to those
that they serve.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ...fields import Spec
from ..plan import Kind, Node
from .adopt import ADOPT
from .augment import AUGMENT
from .choose import CHOOSE
from .distill import DISTILL
from .ensemble import ENSEMBLE_KIND
from .export import EXPORT
from .finetune import FINETUNE
from .general import GENERAL
from .grow import GROW
from .layer_importance import LAYER_IMPORTANCE
from .masked_lm import MASKED_LM
from .pretrain import PRETRAIN
from .prune.prune import PRUNE
from .quantize import QUANTIZE
from .quantize_aware import QUANTIZE_AWARE
from .relu import RELU
from .teacher_logits import TEACHER_LOGITS
from .token_vectors import TOKEN_VECTORS
from .tokenize import TOKENIZE
from .vocabulary import VOCABULARY

S = TypeVar("S", bound=Spec)
_KINDS = (
    TOKENIZE,
    PRETRAIN,
    GROW,
    FINETUNE,
    CHOOSE,
    ADOPT,
    LAYER_IMPORTANCE,
    MASKED_LM,
    GENERAL,
    AUGMENT,
    TEACHER_LOGITS,
    ENSEMBLE_KIND,
    TOKEN_VECTORS,
    DISTILL,
    PRUNE,
    VOCABULARY,
    RELU,
    QUANTIZE_AWARE,
    EXPORT,
    QUANTIZE,
)
STAGES: dict[str, Kind[Any]] = {kind.name: kind for kind in _KINDS}


def kind_of(node: Node[S]) -> Kind[S]:
    """Return the kind of a node, with the functions that check and run it."""
    return STAGES[node.kind.name]
