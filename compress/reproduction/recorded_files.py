"""Locate the files that a recorded command names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..catalog import is_path
from ..errors import CompressError
from ..files.paths import OWN_FOLDER, expand_home

_CARDS = {"recipes": "RECIPE", "tasks": "--task", "teacher": "--teacher", "student": "--student"}
_HUB = "hub:"


@dataclass(frozen=True)
class MovedData:
    """Data to read in place of those that commands name, which may have moved. None: as the command says."""

    data_dir: Path | None = None
    train: Path | None = None
    dev: Path | None = None
    tuning: Path | None = None
    corpus: tuple[str, ...] | None = None

    def replacements(self) -> dict[str, Any]:
        """Parameter of `compress run` -> its replacement."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def check_moved(moved: MovedData, commands: Iterable[Mapping[str, Any]]) -> None:
    """Raise `CompressError` for data that `moved` has and that no command reads. `commands`: parameters of `compress run`."""
    commands = list(commands)
    for name in moved.replacements():
        if not any(words[name] for words in commands):
            raise CompressError(f"{_option(name)}: no command on record names any; leave it out")


def locate_files(words: Mapping[str, Any], folder: Path, moved: MovedData) -> dict[str, Any]:
    """Return `words`, the parameters of a recorded `compress run`, with each file located: in `folder`, else relative to the working
    directory. `moved` replaces data that the command names, and is relative to the working directory alone. Raises `CompressError` for a
    file that is in none of these places."""
    parameters = dict(words)
    for name, option in _CARDS.items():
        values = words[name]
        many = [values] if isinstance(values, str) else list(values or ())
        cards = [_card(word, folder, option) for word in many]
        parameters[name] = cards[0] if isinstance(values, str) else cards or None
    replaced = {name: value for name, value in moved.replacements().items() if words[name]}
    parameters |= replaced
    places = {name: None if name in replaced else folder for name in parameters}
    for name in ("data_dir", "train", "dev", "tuning"):
        if parameters[name] is not None:
            parameters[name] = _data(parameters[name], places[name], name)
    parameters["corpus"] = [
        word if word.startswith(_HUB) else str(_data(Path(word), places["corpus"], "corpus"))
        for word in parameters["corpus"] or ()
    ]
    return parameters


def _card(word: str, folder: Path, option: str) -> str:
    """Return a card's file, the folder of a checkpoint, or a name of the catalogue or the hub unchanged."""
    if word.endswith((".yaml", ".yml")):
        places = (folder / word, folder / Path(word).name, expand_home(word))
        place = next((path for path in places if path.is_file()), None)
    elif option in ("--teacher", "--student"):
        own = word.startswith(OWN_FOLDER)
        place = next((path for path in (folder / word, expand_home(word))[: 1 + own] if path.is_dir()), None)
        if place is None and not own:
            return word
    else:
        return word
    if place is None:
        raise CompressError(f"{option} {word}: is neither in {folder} nor here; put it into one of the two")
    return str(place) if is_path(str(place)) else f"{OWN_FOLDER}{place}"


def _data(path: Path, folder: Path | None, name: str) -> Path:
    """Return where the data at `path` are: in `folder`, if that is given, else relative to the working directory."""
    place = next((each for each in ([folder / path] if folder else []) + [expand_home(path)] if each.exists()), None)
    if place is None:
        if folder is None:
            raise CompressError(f"{_option(name)} {path}: no such file or folder")
        raise CompressError(
            f"{_option(name)} {path}: is neither in {folder} nor here; give it anew with {_option(name)}"
        )
    return place


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
