"""Recipes, teachers and students by name, or from a file of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from .errors import CompressError, did_you_mean
from .spec.base import Spec
from .spec.cards import StudentCard, TeacherCard
from .spec.document import shown
from .spec.recipe import Recipe
from .spec.source import load

Kind = Literal["recipes", "teachers", "students"]
Card = TypeVar("Card", bound=Spec)
MODELS: dict[str, type[Spec]] = {"recipes": Recipe, "teachers": TeacherCard, "students": StudentCard}


def catalogue_folder(kind: Kind) -> Path:
    """Inside an installed package `compress/catalogue/<kind>`; in the source tree `<kind>` beside the package."""
    package = Path(__file__).resolve().parent
    installed = package / "catalogue" / kind
    return installed if installed.is_dir() else package.parent / kind


def load_recipe(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe of the catalogue or a file, with `overrides` (`path=value`) applied before validation."""
    return _load("recipes", name_or_path, Recipe, overrides)


def load_teacher(name_or_path: str | Path) -> TeacherCard:
    """A teacher card of the catalogue or a file."""
    return _load("teachers", name_or_path, TeacherCard)


def load_student(name_or_path: str | Path) -> StudentCard:
    """A student card of the catalogue or a file."""
    return _load("students", name_or_path, StudentCard)


def list_cards(kind: Kind) -> dict[str, Any]:
    """Every card of the catalogue by name, sorted. Raises `CompressError` when one of them is wrong."""
    return {name: _load(kind, name, MODELS[kind]) for name in names(kind)}


def names(kind: Kind) -> list[str]:
    """Names in the catalogue, sorted, without reading the files."""
    return sorted(path.stem for path in catalogue_folder(kind).glob("*.yaml"))


def is_path(name_or_path: str | Path) -> bool:
    """Anything with a path separator or a YAML suffix is a file; anything else is a name."""
    text = str(name_or_path)
    return isinstance(name_or_path, Path) or "/" in text or "\\" in text or text.endswith((".yaml", ".yml"))


def _load(kind: Kind, name_or_path: str | Path, model: type[Card], overrides: Sequence[str] = ()) -> Card:
    if is_path(name_or_path):
        return _matching(Path(name_or_path), model, overrides)
    name = str(name_or_path)
    if name not in names(kind):
        known = ", ".join(names(kind))
        nearest = did_you_mean(name, names(kind))
        hint = f"{nearest} known: {known}" if "did you mean" in nearest else f"; known: {known}"
        raise CompressError(
            f"{kind[:-1]} `{name}` is not in the catalogue{hint}; a file is given by its path, {name}.yaml"
        )
    return _matching(catalogue_folder(kind) / f"{name}.yaml", model, overrides)


def _matching(path: Path, model: type[Card], overrides: Sequence[str]) -> Card:
    card = load(path, model, overrides=overrides)
    name = getattr(card, "name", path.stem)
    if name != path.stem and not any(text.partition("=")[0].strip() == "name" for text in overrides):
        raise CompressError(
            f"{shown(path)}: name: expected the file's own name `{path.stem}`, found `{name}`; rename one of them"
        )
    return card
