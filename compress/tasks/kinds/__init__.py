"""Task kinds: one file, and one line here, for each."""

from __future__ import annotations

from ...spec.kinds import KindName
from .choice import CHOICE
from .classification import CLASSIFICATION
from .embedding import EMBEDDING
from .kind import TaskKind
from .multilabel import MULTILABEL
from .ranking import RANKING
from .regression import REGRESSION
from .span import SPAN
from .tagging import TAGGING

TASK_KINDS: dict[KindName, TaskKind] = {
    "classification": CLASSIFICATION,
    "multilabel": MULTILABEL,
    "tagging": TAGGING,
    "span": SPAN,
    "ranking": RANKING,
    "choice": CHOICE,
    "regression": REGRESSION,
    "embedding": EMBEDDING,
}

__all__ = ["TASK_KINDS", "TaskKind"]
