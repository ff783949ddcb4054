"""A YAML file as plain data, with the line and spelling of each value."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ..errors import CompressError
from ..fields import NOT_UNICODE, is_unicode
from .limits import LARGEST_WHOLE

Where = tuple[str | int, ...]
MOST_BYTES = 1 << 20
MOST_NODES = 5_000
MOST_DEPTH = 40
_MOST_DIGITS = 100  # of a whole number, in whatever base: longer ones are not even parsed
# What PyYAML raises for a scalar that does not fit its tag: a date that does not exist, `!!bool maybe`, `!!int ''`.
UNREADABLE = (ValueError, KeyError, AttributeError, IndexError, OverflowError)
QUOTE = "; quote it if it is text"
PLAIN = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


class TooMuch(Exception):
    """A document with more values or levels than allowed; `line`: where."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


class Loader(yaml.SafeLoader):
    """Loads YAML's plain values: no more and no deeper ones than a specification has, and whole numbers only as large as anything can use,
    whatever base they are written in."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._composed = self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Count nodes before the rest is parsed, which takes seconds for a megabyte of brackets. Keys are nodes, too."""
        self._composed += 1
        self._depth += 1
        if self._depth > MOST_DEPTH + 1 or self._composed > 2 * MOST_NODES + 1:
            raise TooMuch(self.peek_event().start_mark.line + 1)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        if len(node.value) <= _MOST_DIGITS and abs(number := super().construct_yaml_int(node)) <= LARGEST_WHOLE:
            return number
        raise ValueError(f"a whole number beyond {LARGEST_WHOLE}")


Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)


@dataclass
class Document:
    """A parsed YAML file. `lines`: path -> line. `spellings`: path of a scalar -> its text. `overridden`: path set from the command line ->
    how it was written there."""

    file: str
    data: Any
    lines: dict[Where, int] = field(default_factory=dict)
    spellings: dict[Where, str] = field(default_factory=dict)
    overridden: dict[Where, str] = field(default_factory=dict)

    def place(self, where: Where) -> str:
        """Return `file:line`, or `--set` for what the command line set, of the nearest enclosing value that has one."""
        for end in range(len(where), -1, -1):
            if where[:end] in self.overridden:
                return "--set"
            if where[:end] in self.lines:
                return f"{self.file}:{self.lines[where[:end]]}"
        return self.file

    def label(self, where: Where) -> str:
        """Return the place with the path: `file:line: stages[1].distill.epochs`, or `--set distill.epochs` as it was written there."""
        place = self.place(where)
        if place != "--set":
            return f"{place}: {format_location(where)}" if where else place
        end = next(end for end in range(len(where), -1, -1) if where[:end] in self.overridden)
        return f"--set {format_location(where[end:], self.overridden[where[:end]])}"


def format_location(where: Where, start: str = "") -> str:
    """Return e.g. `stages[1].distill.learning_rate`, after `start`; empty for the document itself."""
    text = start
    for part in where:
        name = part if isinstance(part, str) and part.isprintable() else repr(part)
        text += f"[{part}]" if isinstance(part, int) else f".{name}" if text else name
    return text


def path_from_cwd(path: Path) -> str:
    """Return the path relative to the working directory if it is below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError, RuntimeError):  # RuntimeError: a link that leads to itself
        return str(path)


def read_document(path: Path) -> Document:
    """Parse `path` with the safe loader. Raises `CompressError`, one line per mistake."""
    file = path_from_cwd(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig") if len(content) <= MOST_BYTES else ""
    except UnicodeDecodeError as error:
        raise CompressError(f"{file}: expected UTF-8 text, found byte {error.object[error.start]:#04x}") from None
    except OSError as error:
        raise CompressError(f"{file}: cannot be read: {error.strerror}; expected a YAML file") from None
    if len(content) > MOST_BYTES:
        raise CompressError(f"{file}: larger than {MOST_BYTES >> 20} MiB; expected a short YAML file")
    return parse(text, file)


def parse(text: str, file: str, values: type[Loader] = Loader) -> Document:
    """As `read_document`, for a text; `file` is its name in messages, `values` reads its scalars."""
    parsed = _parse_once(text, file, values)
    return Document(file, deepcopy(parsed.data), dict(parsed.lines), dict(parsed.spellings))


@lru_cache(maxsize=64)  # a command reads the same card several times, and PyYAML takes 20 ms for one
def _parse_once(text: str, file: str, values: type[Loader]) -> Document:
    loader = None
    try:
        loader = values(text)
        root = loader.get_single_node()
        document = Document(file, None)
        reader = _Reader(loader, document)
        document.data = None if root is None else reader.value(root, ())
    except yaml.YAMLError as error:
        raise CompressError(_yaml_message(file, error)) from None
    except TooMuch as error:
        limit = f"{MOST_NODES} values, {MOST_DEPTH} levels"
        raise CompressError(f"{file}:{error.line}: too large or too deep once aliases are read ({limit})") from None
    finally:
        if loader is not None:
            loader.dispose()
    if reader.problems:
        raise CompressError("\n".join(reader.problems))
    document.lines.setdefault((), 1)
    return document


def _yaml_message(file: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    if context == "expected a single document in the stream":
        problem, context = "expected one document, found a second (`---`)", None
    place = f"{file}:{mark.line + 1}" if mark else file
    return f"{place}: not valid YAML: {problem}" + (f" {context}" if context else "")


class _Reader:
    """Converts nodes to data. Collects mistakes; bounds what aliases can multiply."""

    def __init__(self, loader: Loader, document: Document) -> None:
        self.loader, self.document = loader, document
        self.problems: list[str] = []
        self.nodes = 0

    def value(self, node: yaml.Node, where: Where) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES or len(where) > MOST_DEPTH:
            raise TooMuch(node.start_mark.line + 1)
        self.document.lines.setdefault(where, node.start_mark.line + 1)
        if isinstance(node, yaml.CollectionNode) and node.tag not in PLAIN:
            self._add_problem(node, where, f"the tag `{node.tag}` is not supported; expected a plain list or mapping")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return tuple(self.value(item, (*where, index)) for index, item in enumerate(node.value))
        self.document.spellings[where] = node.value
        return self._scalar(node, where)

    def _scalar(self, node: yaml.Node, where: Where) -> Any:
        try:
            value = self.loader.construct_object(node)
        except UNREADABLE as error:
            reason = str(error) if type(error) is ValueError else f"no {node.tag.rpartition(':')[2]}"
            self._add_problem(node, where, f"cannot be read as a value ({reason}){QUOTE}")
            return None
        if isinstance(value, str) and not is_unicode(value):
            self._add_problem(node, where, NOT_UNICODE)
            return None
        return value

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str | int, Any]:
        data: dict[str | int, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, where)
            if key is None:
                continue
            if key in data:
                self._add_problem(
                    key_node, (*where, key), f"written twice; first on line {self.document.lines[*where, key]}"
                )
                continue
            self.document.lines[*where, key] = key_node.start_mark.line + 1
            data[key] = self.value(value_node, (*where, key))
        return data

    def _key(self, node: yaml.Node, where: Where) -> str | int | None:
        if node.tag == "tag:yaml.org,2002:merge":
            self._add_problem(node, where, "merge keys (`<<`) are not supported; write the fields out")
            return None
        before = len(self.problems)
        key = self._scalar(node, where) if isinstance(node, yaml.ScalarNode) else None
        if len(self.problems) > before:
            return None
        if isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool)):
            return key
        actual = f"`{node.value}`{QUOTE}" if isinstance(node, yaml.ScalarNode) else "a list or mapping"
        self._add_problem(node, where, f"expected text or a whole number as a key, found {actual}")
        return None

    def _add_problem(self, node: yaml.Node, where: Where, problem: str) -> None:
        path = format_location(where)
        self.problems.append(f"{self.document.file}:{node.start_mark.line + 1}: {path + ': ' if path else ''}{problem}")
