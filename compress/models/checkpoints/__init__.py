"""Checkpoint folders: locate them, check them, read their configs, tokenizers and weights, and save them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .folders import load_classifier

__all__ = ["load_classifier"]


def __getattr__(name: str) -> Any:
    """Import what docs and model cards name when it is asked for, since most users of these modules need little of them."""
    if name != "load_classifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .folders import load_classifier

    return load_classifier
