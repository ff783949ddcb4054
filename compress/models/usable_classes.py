"""Replacements for transformers classes that cannot take batches as used here (rows, padded on the right) or, for pruned models, whose
layers are all alike."""

from __future__ import annotations

from typing import Any

from .pruned.shape import FIELD


def usable_class(kind: Any, config: Any) -> Any:
    """Return the transformers class, or our replacement if it cannot take batches as used here or lacks the layer shapes in `config`."""
    kind = _on_rows(kind)
    if not hasattr(config, FIELD):
        return kind
    from .pruned.model import pruned_class

    return pruned_class(kind)


def _on_rows(kind: Any) -> Any:
    if kind.__name__.startswith("XLNetFor"):
        from . import xlnet

        return getattr(xlnet, kind.__name__, kind)
    if kind.__name__.endswith("ForMultipleChoice"):
        from .choice_rows import takes_rows

        return takes_rows(kind)
    return kind
