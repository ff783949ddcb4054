"""Checks of an untrusted ONNX file before ONNX Runtime opens it."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import CompressError
from ..files.regular import open_regular
from .requirements import requirements
from .structure import Bytes, Call, External, Structure, structure_of

WEIGHTS = "weights_sha256"  # metadata key of a graph whose weights are in another file: that file's SHA-256


def read_structure(path: Path) -> Structure:
    """Read the structure of a graph file, without its weights (milliseconds). CompressError: a missing, truncated or foreign
    file."""
    with open_regular(path, "an ONNX file") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise CompressError(f"{path}: expected an ONNX file, found an empty file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return parse_structure(path, data)


def parse_structure(path: Path, data: Bytes) -> Structure:
    try:
        structure = structure_of(data)
    except ValueError as error:
        reason = "text in it is no UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise CompressError(f"{path}: not an ONNX file, or a truncated one ({reason}); make it again") from None
    if not structure.complete:
        raise CompressError(f"{path}: expected an ONNX model, found no graph in it; make it again")
    return structure


def check_graph_file(path: Path) -> Structure:
    """Check that a file can be handed to ONNX Runtime, and return its structure. CompressError: as `read_structure`; weights
    outside the model's folder or beyond the end of their file; required inputs left out, at which ONNX Runtime crashes."""
    path = Path(path)
    structure = read_structure(path)
    for external in structure.externals:
        _check_external(path, external)
    check_inputs(path, structure)
    return structure


def _check_external(path: Path, external: External) -> None:
    """Refuse external data outside the folder (absolute path, `..`, or a symbolic link), in no file, or beyond the file's end."""
    locations = external.entries.get("location", [])
    for location in locations:
        try:
            size = _size_beside(path, location)
        except (OSError, ValueError):  # a name that is too long or invalid
            size = None
        if size is None:
            raise CompressError(
                f"{path}: external data: expected the file {location[:200]!r} beside the model, found none"
            )
        check_external_range(path, external, size)
    if len(locations) != 1:
        raise CompressError(
            f"{path}: external data of {external.tensor[:200]!r}: expected one location, found {len(locations)}"
        )


def _size_beside(path: Path, location: str) -> int | None:
    """Return the size in bytes of the file at `location`, relative to the model's folder; None if there is none.
    CompressError: it is outside the folder."""
    plain = "\0" not in location and not Path(location).is_absolute() and ".." not in Path(location).parts
    target = path.parent / (location if plain else "")
    if not plain or not target.resolve().is_relative_to(path.parent.resolve()) or target.is_symlink():
        raise CompressError(
            f"{path}: external data at {location[:200]!r} is outside the model's folder: refused; "
            "use a model whose weights are in the file or beside it"
        )
    return target.stat().st_size if target.is_file() else None


def check_external_range(path: Path, external: External, size: int) -> None:
    """Check that the `external` tensor of the graph in `path` is within the `size` bytes of its file. CompressError: it is
    not."""
    ranges = {name: external.entries.get(name, ["0"]) for name in ("offset", "length")}
    for name, values in ranges.items():
        if len(values) != 1 or not re.fullmatch(r"[0-9]{1,18}", values[0]):
            raise CompressError(
                f"{path}: external data of {external.tensor[:200]!r}: {name}: expected a number of bytes, found {values[0][:40]!r}"
            )
    end = int(ranges["offset"][0]) + int(ranges["length"][0])
    if end > size:
        raise CompressError(
            f"{path}: external data of {external.tensor[:200]!r} ends at byte {end:,} of a file of {size:,} bytes: refused"
        )


def check_version(path: Path, structure: Structure) -> None:
    """Check that this ONNX Runtime is new enough for the graph in `path`. CompressError: it is not; the message names a file
    beside it that would open."""
    import onnxruntime

    needed, version = requirements(structure), onnxruntime.__version__
    if needed.allow(version):
        return
    others = (
        each for each in sorted(path.parent.glob("*.onnx")) if each != path and not each.stem.endswith("_unpadded")
    )
    opening = [other.name for other in others if _allows(other, version)]
    advice = f"; {opening[0]} beside it opens with that" if opening else "; export with opset: 20 for older ones"
    raise CompressError(f"{path}: needs {needed}, found onnxruntime {version}{advice}")


def _allows(path: Path, version: str) -> bool:
    """Whether `version` of ONNX Runtime opens the file at `path`, as far as is known; False for a broken file or one that is
    not ONNX."""
    try:
        return requirements(read_structure(path)).allow(version)
    except CompressError:
        return False


def check_inputs(path: Path, structure: Structure) -> None:
    """Check that only optional inputs have no name. CompressError: a required one has none."""
    for call in structure.calls:
        arity = structure.functions.get((call.domain, call.kind))
        if arity is not None and (len(call.inputs) != arity or "" in call.inputs):
            raise CompressError(
                f"{path}: {call}: expected the {arity} inputs of the function, found some left out: refused"
            )
        empty = [position for position, name in enumerate(call.inputs) if not name]
        if empty and arity is None:
            _check_left_out(path, call, empty)


def _check_left_out(path: Path, call: Call, positions: list[int]) -> None:
    kinds = [kind for kind in _operators().get((call.domain, call.kind), ()) if kind.since_version <= call.version]
    if not kinds:
        return  # ONNX Runtime reports unknown operators itself
    inputs = max(kinds, key=lambda kind: kind.since_version).inputs
    for position in positions:
        parameter = inputs[min(position, len(inputs) - 1)] if inputs else None
        if parameter is None or parameter.option.name != "Optional":
            raise CompressError(f"{path}: {call}: input {position} has no name, and it may not be left out: refused")


@cache
def _operators() -> dict[tuple[str, str], list[Any]]:
    """Map (domain, name) to ONNX Runtime's schemas of the operator, one for each version that changed it."""
    from onnxruntime.capi import _pybind_state

    schemas: Any = _pybind_state  # its stub leaves them out
    operators: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for kind in schemas.get_all_operator_schema():
        operators[kind.domain, kind.name].append(kind)
    return operators


def check_owner(path: Path, metadata: Mapping[str, str], owner: Path, content: bytes) -> None:
    """Check that the graph in `path` belongs to the weights in `content`, that of the file `owner`. CompressError: it does
    not."""
    if metadata.get(WEIGHTS) != hashlib.sha256(content).hexdigest():
        raise CompressError(f"{path}: made for another {owner.name} than the one beside it, or one of them is damaged")
