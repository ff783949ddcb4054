"""Damaged recipes, students and teachers of the catalogue, and damaged `--set`: planned, or refused without a traceback."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fuzzing import Case, any_value, check, damaged_bytes, damaged_document

from compress.catalog import catalogue_folder, load_recipe, names
from compress.errors import CompressError
from compress.models.cards import load_student, load_teacher
from compress.pipeline import Request, plan_all

pytestmark = pytest.mark.end_to_end

SLICE, ALL = 100, 10_000
LOADERS = {"recipes": load_recipe, "students": load_student, "teachers": load_teacher}
CARDS = [(kind, name) for kind in LOADERS for name in names(kind)]  # pyright: ignore[reportArgumentType]
TEXT = "the film is good .\n\nthe story is not bad .\n"


def cases(folder: Path, first: int, count: int) -> Iterator[Case]:
    (folder / "text.txt").write_text(TEXT)
    for number in range(first, first + count):
        rng = random.Random(f"recipes/{number}")
        kind, name = rng.choice(CARDS)
        source = catalogue_folder(kind) / f"{name}.yaml"  # pyright: ignore[reportArgumentType]
        if kind == "recipes" and rng.random() < 0.4:
            said = override(yaml.safe_load(source.read_text(encoding="utf-8")), rng)
            yield (
                f"{number} {name} --set {said:.200}",
                lambda name=name, said=said: plan(folder, name, overrides=(said,)),
            )
            continue
        said, content = damaged(source.read_bytes(), number, rng)
        file = folder / source.name
        file.write_bytes(content)
        yield f"{number} {kind}/{name} {said}", lambda kind=kind, file=file: use(folder, kind, file)


def damaged(data: bytes, number: int, rng: random.Random) -> tuple[str, bytes]:
    """Damage a document and write it as YAML or JSON, or damage its bytes."""
    if rng.random() < 0.3:
        return damaged_bytes(data, number)
    said, document = damaged_document(yaml.safe_load(data), number)
    try:
        text = yaml.safe_dump(document, sort_keys=False) if rng.random() < 0.5 else json.dumps(document)
        return said, text.encode()
    except (UnicodeEncodeError, yaml.YAMLError, RecursionError):  # not representable in a file
        return said, json.dumps(document).encode()


def override(document: Any, rng: random.Random) -> str:
    """Return a path of the recipe, intact or damaged, with any value."""
    path: list[str] = []
    key: Any
    while isinstance(document, dict | list) and document and (not path or rng.random() < 0.8):
        key = rng.choice(list(document) if isinstance(document, dict) else range(len(document)))
        path.append(f"[{key}]" if isinstance(key, int) and rng.random() < 0.5 else str(key))
        document = document[key]
    value = any_value(rng)
    written: Any = rng.choice(
        (str, json.dumps, hex if type(value) is int else str, str.lower if type(value) is str else str)
    )
    text = f"{'.'.join(path).replace('.[', '[')}={written(value)}"
    if rng.random() < 0.3:
        _, raw = damaged_bytes(text.encode("utf-8", "surrogatepass"), rng.randrange(10**9))
        text = raw[:100_000].decode("utf-8", "surrogateescape")
    return text


def use(folder: Path, kind: str, file: Path) -> None:
    LOADERS[kind](file)
    if kind == "recipes":
        plan(folder, str(file))
    elif kind == "students":
        plan(folder, "distilbert", student=str(file))
    else:
        plan(folder, "int8", teacher=str(file))


def plan(folder: Path, recipe: str, **changes: Any) -> None:
    """Plan with text, or without if no stage of the recipe reads it."""
    request = {"teacher": "bert-mini", "corpus": (str(folder / "text.txt"),), "root": folder / "runs", **changes}
    try:
        plan_all(Request((recipe,), ("toy-sentiment",), **request))
    except CompressError as error:
        if "no stage of" not in str(error):
            raise
        plan_all(Request((recipe,), ("toy-sentiment",), **{**request, "corpus": ()}))


@pytest.mark.parametrize(("kind", "name"), CARDS)
def test_whole_cards_load(kind: str, name: str) -> None:
    LOADERS[kind](catalogue_folder(kind) / f"{name}.yaml")  # pyright: ignore[reportArgumentType]


def test_damaged_cards_and_overrides_are_planned_or_refused(tmp_path: Path) -> None:
    check(cases(tmp_path, 0, SLICE), SLICE)


@pytest.mark.slow
def test_many_damaged_cards_and_overrides_are_planned_or_refused(tmp_path: Path) -> None:
    check(cases(tmp_path, SLICE, ALL - SLICE), ALL - SLICE)
