"""Model heads: one file, and one line here, for each task kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...spec.kinds import KindName
from .choice import CHOICE
from .classification import CLASSIFICATION
from .embedding import EMBEDDING
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
    "choice": CHOICE,
    "regression": REGRESSION,
    "embedding": EMBEDDING,
}

STATES = "last_hidden_state"  # padded embedding graphs also output it, first, for tools that pool themselves

__all__ = [
    "HEADS",
    "STATES",
    "Head",
    "auto_class",
    "head_named",
    "head_of",
    "model_from",
    "without_pooler",
]


def auto_class(head: Head) -> Any:
    """Return the transformers class that loads models with this head."""
    import transformers

    return getattr(transformers, head.model)


def model_from(head: Head, config: Any) -> Any:
    """Return a model with this head and random weights, for a transformers config, drawn with torch's global seed."""
    model = auto_class(head).from_config(config)
    if head.pooled:
        from ..usable_classes import usable_class

        model.__class__ = usable_class(type(model), config)
    return without_pooler(model, head)


def without_pooler(model: Any, head: Head) -> Any:
    """Return the model itself, with its pooler removed if the head is `bare`, as nothing reads it."""
    if head.bare and getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


def head_named(architectures: Sequence[str]) -> Head:
    """Return the head for the class names in config.json's `architectures`; the classification head if none matches."""
    heads = (head for head in HEADS.values() for name in architectures if head.is_of(name))
    return next(heads, CLASSIFICATION)


def head_of(model: Any) -> Head:
    """Return the head of a transformers model."""
    return head_named([type(model).__name__])
