"""Recipes, with what they say of quantization checked: here the methods are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import catalog
from ..quantize.methods import QUANTIZERS
from ..spec.recipe import Recipe


def load_recipe(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """As `catalog.load_recipe`. One that was made in Python is checked when it is planned."""
    return catalog.load_recipe(name_or_path, overrides, QUANTIZERS)
