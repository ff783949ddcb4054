"""Read from an ONNX file's bytes what it refers to: external weights, omitted inputs, its own functions.

ONNX Runtime follows an external-data location out of the model's folder, and crashes at some inputs without a name. The
checker of `onnx` detects only the former, and a shipped bundle does not depend on `onnx`. So this module walks the file:
protobuf fields by message and number (onnx.proto), skipping the weights.
"""

from __future__ import annotations

import mmap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

Bytes = mmap.mmap | bytes
_MAX_DEPTH = 100  # protobuf's own limit on nesting

# Message -> field number -> the message in it; or `text`, which must be valid; or `.` and the name to keep its text under.
_MESSAGES: dict[str, dict[int, str]] = {
    "model": {2: "text", 3: "text", 4: "text", 6: "text", 7: "graph", 8: "opset", 14: "entry", 20: "training",
              25: "function"},
    "opset": {1: ".domain"},
    "entry": {1: "text", 2: "text"},
    "training": {1: "graph", 2: "graph", 3: "entry", 4: "entry"},
    "graph": {1: "node", 2: "text", 5: "tensor", 10: "text", 11: "value", 12: "value", 13: "value", 14: "quantization",
              15: "sparse", 16: "entry"},
    "function": {1: ".name", 4: ".input", 5: "text", 6: "text", 7: "node", 8: "text", 9: "opset", 10: ".domain",
                 11: "attribute", 12: "value", 13: "text", 14: "entry"},
    "node": {1: ".input", 2: "text", 3: ".name", 4: ".kind", 5: "attribute", 6: "text", 7: ".domain", 8: "text",
             9: "entry"},
    "attribute": {1: "text", 5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 13: "text", 14: "type", 15: "type",
                  21: "text", 22: "sparse", 23: "sparse"},
    "value": {1: "text", 2: "type", 3: "text", 4: "entry"},
    "type": {1: "tensor type", 4: "element", 5: "map", 6: "text", 8: "tensor type", 9: "element"},
    "tensor type": {2: "shape"},
    "element": {1: "type"},
    "map": {2: "type"},
    "shape": {1: "dimension"},
    "dimension": {2: "text", 3: "text"},
    "quantization": {1: "text", 2: "entry"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {8: ".name", 12: "text", 13: "external", 16: "entry"},
    "external": {1: ".key", 2: ".value"},
}  # fmt: skip

_OPSETS = {"model": 8, "function": 9}  # number of the `opset` field


@dataclass(frozen=True)
class External:
    """Weights outside the file: its entries about the tensor, key -> values, e.g. `location`, `offset`, `length`."""

    tensor: str
    entries: dict[str, list[str]]


@dataclass(frozen=True)
class Call:
    """A node. `version`: the opset of its domain, 0 if the file names none. `inputs` may contain empty names."""

    name: str
    domain: str
    kind: str
    inputs: tuple[str, ...]
    version: int

    def __str__(self) -> str:
        return f"{self.kind} node {self.name!r}" if self.name else f"{self.kind} node without a name"


@dataclass
class Structure:
    """The contents of one file. `calls`: every node, including those in subgraphs and functions; `functions`: (domain, name)
    -> number of inputs; `opsets`: of the model itself, domain -> version."""

    complete: bool = False
    externals: list[External] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    functions: dict[tuple[str, str], int] = field(default_factory=dict)
    ir_version: int = 0
    opsets: dict[str, int] = field(default_factory=dict)

    @property
    def locations(self) -> set[str]:
        """The locations of weights outside the file, as the file gives them."""
        return {location for external in self.externals for location in external.entries.get("location", [])}


def structure_of(data: Bytes) -> Structure:
    """Parse a whole file. `ValueError`: it is not an ONNX file, is truncated, or has invalid text."""
    walk = _Walk(data)
    walk.message("model", 0, len(data), 0, {})
    return walk.structure


class _Walk:
    def __init__(self, data: Bytes) -> None:
        self.data, self.structure = data, Structure()

    def message(self, kind: str, at: int, end: int, depth: int, versions: dict[str, int]) -> dict[str, list[str]]:
        """Read a message; return the texts that it keeps, by name. `versions`: domain -> version of its operators."""
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        if kind in _OPSETS:
            versions = self._versions(kind, at, end)
            if kind == "model":
                self.structure.opsets = versions
                self.structure.ir_version = max(_field_integers(self.data, at, end, field=1), default=0)
        kept: dict[str, list[str]] = defaultdict(list)
        entries: dict[str, list[str]] = defaultdict(list)
        for number, start, stop in _fields(self.data, at, end):
            inner = _MESSAGES[kind].get(number, "")
            if inner == "text" or inner.startswith("."):
                kept[inner].append(bytes(self.data[start:stop]).decode())
            elif inner:
                self.structure.complete |= (kind, inner) == ("model", "graph")
                below = self.message(inner, start, stop, depth + 1, versions)
                for key in below[".key"] if inner == "external" else ():
                    entries[key] += below[".value"]
        self._note(kind, kept, entries, versions)
        return kept

    def _versions(self, kind: str, at: int, end: int) -> dict[str, int]:
        versions: dict[str, int] = {}
        for number, start, stop in _fields(self.data, at, end):
            if number == _OPSETS[kind]:
                domains = [bytes(self.data[s:e]).decode() for n, s, e in _fields(self.data, start, stop) if n == 1]
                versions[_domain_name("".join(domains[-1:]))] = max(_field_integers(self.data, start, stop), default=0)
        return versions

    def _note(
        self, kind: str, kept: dict[str, list[str]], entries: dict[str, list[str]], versions: dict[str, int]
    ) -> None:
        name, domain = "".join(kept[".name"][-1:]), _domain_name("".join(kept[".domain"][-1:]))
        if kind == "node":
            what = "".join(kept[".kind"][-1:])
            self.structure.calls.append(Call(name, domain, what, tuple(kept[".input"]), versions.get(domain, 0)))
        elif kind == "function":
            self.structure.functions[domain, name] = len(kept[".input"])
        elif entries:
            self.structure.externals.append(External(name, dict(entries)))


def _domain_name(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number is cut off")


def _fields(data: Bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (field number, start, end) of each length-delimited field; skip the others."""
    while at < end:
        tag, at = _varint(data, at, end)
        if not 8 <= tag < 1 << 32:  # parsers drop the higher bits, and would read a different field
            raise ValueError(f"field {tag >> 3} does not occur in ONNX")
        kind = tag & 7
        if kind == 2:
            size, at = _varint(data, at, end)
            if at + size > end:
                raise ValueError(f"a field of {size} bytes is cut off after {end - at}")
            yield tag >> 3, at, at + size
            at += size
        elif kind == 0:
            _, at = _varint(data, at, end)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind} does not occur in ONNX")
    if at > end:
        raise ValueError("a number is cut off")


def _field_integers(data: Bytes, at: int, end: int, *, field: int = 2) -> Iterator[int]:
    """Yield the integers in the field number `field` of a message: 2 is the version in an `opset`."""
    while at < end:
        tag, at = _varint(data, at, end)
        if tag & 7 in (1, 5):
            at += 8 if tag & 7 == 1 else 4
            continue
        value, at = _varint(data, at, end)
        if tag & 7 == 2:
            at += value
        elif tag >> 3 == field:
            yield value
