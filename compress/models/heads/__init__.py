"""The heads of models: one file and one line here for each kind of task."""

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

STATES = "last_hidden_state"  # what padded graphs of vectors give too, first, for tools that pool by themselves

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
    """The class of transformers that loads models with this head."""
    import transformers

    return getattr(transformers, head.model)


def model_from(head: Head, config: Any) -> Any:
    """A model with this head and random weights, under torch's global seed, by a config of transformers."""
    model = auto_class(head).from_config(config)
    if head.pooled:
        from ..usable_classes import usable_class

        model.__class__ = usable_class(type(model), config)
    return without_pooler(model, head)


def without_pooler(model: Any, head: Head) -> Any:
    """The model itself; where the head is `bare`, its encoder has no pooler from now on, for nothing reads it."""
    if head.bare and getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


def head_named(architectures: Sequence[str]) -> Head:
    """The head of a model by the names of its class, as config.json lists them; that of classes where none tells."""
    heads = (head for head in HEADS.values() for name in architectures if head.is_of(name))
    return next(heads, CLASSIFICATION)


def head_of(model: Any) -> Head:
    """The head of a model of transformers."""
    return head_named([type(model).__name__])
