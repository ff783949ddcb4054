"""The heads of models: one file and one line here for each kind of task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...spec.kinds import KindName
from .classification import CLASSIFICATION
from .head import Head
from .multilabel import MULTILABEL
from .ranking import RANKING
from .regression import REGRESSION
from .span import SPAN
from .tagging import TAGGING

HEADS: dict[KindName, Head] = {
    "classification": CLASSIFICATION,
    "multilabel": MULTILABEL,
    "tagging": TAGGING,
    "span": SPAN,
    "ranking": RANKING,
    "regression": REGRESSION,
}

__all__ = ["HEADS", "Head", "auto_class", "head_named", "head_of"]


def auto_class(head: Head) -> Any:
    """The class of transformers that loads models with this head."""
    import transformers

    return getattr(transformers, head.model)


def head_named(architectures: Sequence[str]) -> Head:
    """The head of a model by the names of its class, as config.json lists them; that of classes where none tells."""
    heads = (head for head in HEADS.values() for name in architectures if head.is_of(name))
    return next(heads, CLASSIFICATION)


def head_of(model: Any) -> Head:
    """The head of a model of transformers."""
    return head_named([type(model).__name__])
