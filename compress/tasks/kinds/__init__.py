"""The kinds of tasks: one file and one line here for each."""

from __future__ import annotations

from compress.spec.kinds import KindName

from .classification import CLASSIFICATION
from .embedding import EMBEDDING
from .kind import TaskKind
from .multilabel import MULTILABEL
from .regression import REGRESSION
from .tagging import TAGGING

TASK_KINDS: dict[KindName, TaskKind] = {
    "classification": CLASSIFICATION,
    "multilabel": MULTILABEL,
    "tagging": TAGGING,
    "regression": REGRESSION,
    "embedding": EMBEDDING,
}

__all__ = ["TASK_KINDS", "TaskKind"]
