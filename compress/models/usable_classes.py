"""Which class stands for one of transformers that cannot take batches as they are here: rows, padded on the right; or whose layers
are all alike, for a pruned model."""

from __future__ import annotations

from typing import Any

from .pruned_shape import FIELD


def usable_class(kind: Any, config: Any) -> Any:
    """The class of transformers, or ours in its place where that cannot take batches as they are here, or has not the layers that
    `config` says."""
    kind = _on_rows(kind)
    if not hasattr(config, FIELD):
        return kind
    from .pruned import pruned_class

    return pruned_class(kind)


def _on_rows(kind: Any) -> Any:
    if kind.__name__.startswith("XLNetFor"):
        from . import xlnet

        return getattr(xlnet, kind.__name__, kind)
    if kind.__name__.endswith("ForMultipleChoice"):
        from .choice_rows import reads_rows

        return reads_rows(kind)
    return kind
