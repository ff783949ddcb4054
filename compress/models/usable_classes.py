"""Which class stands for one of transformers that cannot take batches as they are here: rows, padded on the right."""

from __future__ import annotations

from typing import Any


def usable_class(kind: Any) -> Any:
    """The class of transformers, or ours in its place where that cannot take batches as they are here."""
    if kind.__name__.startswith("XLNetFor"):
        from . import xlnet

        return getattr(xlnet, kind.__name__, kind)
    if kind.__name__.endswith("ForMultipleChoice"):
        from .choice_rows import reads_rows

        return reads_rows(kind)
    return kind
