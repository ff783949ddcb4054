"""`--set path=value`: change a document before it is validated, so that overrides are validated just as the file is."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import reduce
from typing import Any

from ..errors import CompressError, did_you_mean
from .document import QUOTE, Document, Loader, Where, format_location, parse
from .schema import child

PART = re.compile(r"\.?(?:(?P<name>[^.\[\]=]+)|\[(?P<index>\d+)\]|\[\"(?P<quoted>[^\"]+)\"\])")
PER_TASK = "per_task"
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")


def apply_overrides(document: Document, overrides: Sequence[str], fields: Collection[str]) -> None:
    """Set each `path=value` in `document`, in order. Raises `CompressError`, one line per path that does not exist.

    `fields`: the document's top-level fields. A field that is set for a stage holds for all tasks: it is removed from the stage's
    `per_task`, unless it is set there as well, before or after.

    Paths: `teacher`, `stages[1].distill.epochs` or `stages.1.distill.epochs`, and, by the kind of a stage, `distill.epochs`. Values are
    YAML (`[1, 2]`, `{12: distil-3l}`, `null`); `1e-4` is a number.
    """
    problems = []
    for text in overrides:
        try:
            path, value = _parse(text)
            document.overridden[_set(document, path, value, fields)] = text.partition("=")[0].strip()
        except ValueError as error:
            problems.append(f"--set {text.partition('=')[0]}: {error}")
    if problems:
        raise CompressError("\n".join(problems))
    for where in list(document.overridden):
        match where:
            case ("stages", _, _, name, *_) if name != PER_TASK:
                _set_for_all_tasks(document, where[:3], name)


def _set_for_all_tasks(document: Document, stage: Where, name: str | int) -> None:
    """Remove the field `name` of a stage from what the file sets for single tasks."""
    per_task = reduce(child, (*stage, PER_TASK), document.data)
    for task, own in per_task.items() if isinstance(per_task, dict) else ():
        where = (*stage, PER_TASK, task)
        if isinstance(own, dict) and name in own and not _is_set(document, (*where, name)):
            rest = {key: value for key, value in own.items() if key != name}
            document.data = _replace_value(document.data, list(where), rest, [])


def _is_set(document: Document, where: Where) -> bool:
    """Whether the value at `where`, one around it or one in it was set."""
    return any(path[: len(where)] == where[: len(path)] for path in document.overridden)


def _parse(text: str) -> tuple[list[str | int], Any]:
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise ValueError("expected PATH=VALUE, e.g. distill.epochs=3")
    parts, position = [], 0
    path = path.strip()
    while position < len(path):
        match = PART.match(path, position)
        if match is None:
            raise ValueError(f"not a path at `{path[position:]}`; expected e.g. stages[1].distill.epochs")
        index = match["index"]
        parts.append(int(index) if index else match["name"] or match["quoted"])
        position = match.end()
    return parts, parse_value(value)


class _Loader(Loader):
    """Reads `1e-4`, which is text in YAML 1.1, as a number."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+.0123456789"))


def parse_value(text: str) -> Any:
    """Return the YAML value `text` as plain data, a list as a tuple; `1e-4` is a number. Raises `ValueError`."""
    try:
        return parse(text, "", _Loader).data
    except CompressError as error:
        _, _, why = str(error).partition(": ")  # after the line number, which is always 1
        why = why.removeprefix("not valid YAML: ").removesuffix(QUOTE)
        raise ValueError(f"{text!r} is not a YAML value: {why}{QUOTE}") from None


def _set(document: Document, path: list[str | int], value: Any, fields: Collection[str]) -> Where:
    """Set the value; return the full path."""
    parts = _by_kind(document.data, path, fields)
    if not isinstance(document.data, dict):
        raise ValueError(f"{document.file} is not a mapping")
    where: list[str | int] = []
    document.data = _replace_value(document.data, parts, value, where)
    inside = len(where)
    for details in (document.spellings, document.lines):  # of what was there before
        for known in [known for known in details if known[:inside] == tuple(where)]:
            del details[known]
    return tuple(where)


def _replace_value(data: Any, parts: list[str | int], value: Any, where: list[str | int]) -> Any:
    """Return `data` with `value` at `parts`; appends the steps taken, as keys of the data, to `where`."""
    if not parts:
        return value
    part, rest = parts[0], parts[1:]
    if isinstance(data, tuple):
        index = _index(part, data, where)
        where.append(index)
        return (*data[:index], _replace_value(data[index], rest, value, where), *data[index + 1 :])
    if isinstance(data, str) and len(where) == 2 and where[0] == "stages":
        data = {data: None}  # a stage without fields may be written as its kind alone
    if data is not None and not isinstance(data, dict):
        raise ValueError(f"`{format_location(tuple(where))}` is {data!r}, which has no `{part}` inside")
    key = _key(part, data or {})
    where.append(key)
    return {**(data or {}), key: _replace_value((data or {}).get(key), rest, value, where)}


def _index(part: str | int, data: tuple[Any, ...], where: Sequence[str | int]) -> int:
    if not str(part).isdecimal():
        raise ValueError(f"`{format_location(tuple(where))}` is a list; expected an index such as [0], found `{part}`")
    index = int(part)
    if index >= len(data):
        raise ValueError(
            f"`{format_location(tuple(where))}` has {len(data)} entries, counted from 0; there is no [{index}]"
        )
    return index


def _key(part: str | int, data: dict[Any, Any]) -> str | int:
    """Return the key, as a number if the mapping is empty or has such keys (a student per teacher depth)."""
    if str(part).isdecimal() and (not data or any(isinstance(key, int) for key in data)):
        return int(part)
    return part


def _by_kind(data: Any, path: list[str | int], fields: Collection[str]) -> list[str | int]:
    """Expand `distill.epochs` to `stages[1].distill.epochs`; a stage with a name is found by its name."""
    stages = data.get("stages") if isinstance(data, dict) else None
    if not isinstance(stages, tuple) or path[0] in fields or len(path) < 2:
        return path
    kinds = [next(iter(stage), None) if isinstance(stage, dict) else stage for stage in stages]
    names = [_own_name(stage) or kind for stage, kind in zip(stages, kinds, strict=True)]
    if path[0] in names:
        index = names.index(path[0])
        return ["stages", index, str(kinds[index]), *path[1:]]
    if path[0] in kinds:
        named = [str(name) for name, kind in zip(names, kinds, strict=True) if kind == path[0]]
        raise ValueError(f"`{data.get('name', 'it')}` has stages of this kind with names; say {' or '.join(named)}")
    known = [*(name for name in names if isinstance(name, str)), *fields]
    raise ValueError(
        f"`{data.get('name', 'it')}` has neither a field nor a stage `{path[0]}`{did_you_mean(str(path[0]), known)}"
    )


def _own_name(stage: Any) -> Any:
    body = next(iter(stage.values()), None) if isinstance(stage, dict) else None
    return body.get("name") if isinstance(body, dict) else None
