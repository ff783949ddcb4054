"""Recipes, teachers and students by name, or from a user's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from .errors import CompressError, did_you_mean
from .fields import Spec
from .files.catalogue import Kind, catalogue_folder, names
from .files.paths import expand_home, yaml_here
from .spec.document import path_from_cwd
from .spec.quantization import Method
from .spec.recipe import Recipe
from .spec.source import load

Card = TypeVar("Card", bound=Spec)


def load_recipe(
    name_or_path: str | Path, overrides: Sequence[str] = (), methods: Mapping[str, Method] | None = None
) -> Recipe:
    """Load a recipe of the catalogue or a file, with `overrides` (`path=value`) applied before validation. `methods`: the
    quantization methods; without them, a recipe's settings for its method are not checked here."""
    return load_card("recipes", name_or_path, Recipe, overrides, {"methods": methods or {}})


def list_cards(kind: Kind, model: type[Card]) -> dict[str, Card]:
    """Return every card of the catalogue by name, sorted. Raises `CompressError` when one of them is wrong."""
    return {name: load_card(kind, name, model) for name in names(kind)}


def is_path(name_or_path: str | Path) -> bool:
    """Whether this is a file: anything with a path separator or a YAML suffix; anything else is a name."""
    text = str(name_or_path)
    return isinstance(name_or_path, Path) or "/" in text or "\\" in text or text.endswith((".yaml", ".yml"))


def load_card(
    kind: Kind,
    name_or_path: str | Path,
    model: type[Card],
    overrides: Sequence[str] = (),
    context: Mapping[str, Any] | None = None,
) -> Card:
    """Load a card of the catalogue, or a user's file, and validate it as `model`."""
    if is_path(name_or_path):
        return _matching(expand_home(name_or_path), model, overrides, context)
    name = str(name_or_path)
    if name not in names(kind):
        known = ", ".join(names(kind))
        nearest = did_you_mean(name, names(kind))
        hint = f"{nearest} known: {known}" if "did you mean" in nearest else f"; known: {known}"
        way = "a file of your own is given as ./NAME.yaml"
        if own := yaml_here(name):
            raise CompressError(
                f"{kind[:-1]} `{name}` is not in the catalogue; the file {own} in this folder is given as ./{own}"
            )
        if kind in ("teachers", "students"):
            way = "a checkpoint is given as ./FOLDER or as the hub's OWNER/NAME, a card of your own as ./NAME.yaml"
        raise CompressError(f"{kind[:-1]} `{name}` is not in the catalogue{hint}; {way}")
    return _matching(catalogue_folder(kind) / f"{name}.yaml", model, overrides, context)


def _matching(path: Path, model: type[Card], overrides: Sequence[str], context: Mapping[str, Any] | None) -> Card:
    card = load(path, model, overrides=overrides, context=context)
    name = getattr(card, "name", path.stem)
    if name != path.stem and not any(text.partition("=")[0].strip() == "name" for text in overrides):
        raise CompressError(
            f"{path_from_cwd(path)}: name: expected the file's own name `{path.stem}`, found `{name}`; rename one of them"
        )
    return card
