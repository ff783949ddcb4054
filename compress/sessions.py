"""Open an ONNX Runtime session on a file that may not be ours: checked first, same options everywhere."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CompressError
from .machine import usable_cores

if TYPE_CHECKING:
    import onnxruntime

# ONNX Runtime follows an external-data location out of the model's folder, and `onnx` (whose checker
# refuses) is not among what a shipped bundle needs. So the file is walked here: protobuf fields that can
# hold a tensor, by message and field number (onnx.proto); everything else is skipped unread.
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "external"},
    "external": {1: "key", 2: "value"},
}
WEIGHTS = "weights_sha256"  # metadata of a graph whose weights are in another file: that file's
_Bytes = mmap.mmap | bytes
_MAX_DEPTH = 100  # protobuf's own limit on nesting


def _varint(data: _Bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number is cut off")


def _fields(data: _Bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(field number, start, end) of each length-delimited field; the others are stepped over."""
    while at < end:
        tag, at = _varint(data, at, end)
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


def _locations(data: _Bytes, at: int, end: int, message: str = "model", depth: int = 0) -> Iterator[str]:
    """Every external-data location below `message`."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    entry: dict[str, list[bytes]] = {"key": [], "value": []}
    for number, start, stop in _fields(data, at, end):
        inner = _FIELDS[message].get(number)
        if inner in entry:
            entry[inner].append(bytes(data[start:stop]))
        elif inner is not None:
            yield from _locations(data, start, stop, inner, depth + 1)
    if message == "external" and b"location" in entry["key"]:
        yield from (value.decode() for value in entry["value"])


def _has_graph(data: _Bytes) -> bool:
    return any(number == 7 for number, _, _ in _fields(data, 0, len(data)))


def _check_location(path: Path, location: str) -> None:
    """Refuse what leaves the folder: absolute, `..`, or through a symbolic link; and what is not there."""
    plain = "\0" not in location and not Path(location).is_absolute() and ".." not in Path(location).parts
    target = path.parent / (location if plain else "")
    if not plain or not target.resolve().is_relative_to(path.parent.resolve()) or target.is_symlink():
        raise CompressError(
            f"{path}: external data at {location!r} is outside the model's folder: refused; "
            "use a model whose weights are in the file or beside it"
        )
    if not target.is_file():
        raise CompressError(f"{path}: external data: expected the file {location!r} beside the model, found none")


def external_locations(path: Path) -> set[str]:
    """Where a graph's weights are outside its file, as it says. CompressError: a missing, truncated or foreign file.

    Reads the structure only, never the weights (milliseconds).
    """
    if not path.is_file():
        raise CompressError(f"{path}: expected an ONNX file, found {'a folder' if path.is_dir() else 'nothing'}")
    if path.stat().st_size == 0:
        raise CompressError(f"{path}: expected an ONNX file, found an empty file")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            locations = set(_locations(data, 0, len(data)))
            complete = _has_graph(data)
        except (ValueError, RecursionError) as error:
            raise CompressError(f"{path}: not an ONNX file, or a truncated one ({error}); make it again") from None
    if not complete:
        raise CompressError(f"{path}: expected an ONNX model, found no graph in it; make it again")
    return locations


def check_graph_file(path: Path) -> None:
    """As `external_locations`, and CompressError for weights outside the model's folder."""
    for location in sorted(external_locations(Path(path))):
        _check_location(path, location)


def session_options(threads: int | None = None, spinning: bool = False) -> onnxruntime.SessionOptions:
    """`threads` intra-op (default: the usable cores), one inter-op; threads that wait do not spin.

    Threads that spin cost up to twice the time on a busy machine. The memory arena and pattern stay on, as
    they are by default: no gain without them held from run to run (figures: docs/runtime.md).
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or usable_cores()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for pool in ("intra_op", "inter_op"):
        options.add_session_config_entry(f"session.{pool}.allow_spinning", str(int(spinning)))
    return options


def open_session(
    path: Path,
    threads: int | None = None,
    configure: Callable[[onnxruntime.SessionOptions], None] | None = None,
) -> onnxruntime.InferenceSession:
    """A CPU session with `session_options`, the same everywhere; `configure` may add to them.

    SkipLayerNormalization stays unfused (its CPU kernel is slower than what it replaces). CompressError: the file.
    """
    check_graph_file(path)
    options = session_options(threads)
    if configure:
        configure(options)
    return _session(path, str(path), options)


def open_sharing(path: Path, owner: Path, threads: int | None = None) -> onnxruntime.InferenceSession:
    """As `open_session`, of a graph whose weights are in the model file `owner` beside it. Both are read once, and what
    happens to the files afterwards is no matter. CompressError: the files, or a graph that was made for another `owner`."""
    locations = external_locations(path)
    if locations - {owner.name}:
        raise CompressError(f"{path}: expected its weights in {owner.name}, found some in {sorted(locations)[0]!r}")
    content = owner.read_bytes()
    options = session_options(threads)
    options.add_external_initializers_from_files_in_memory([owner.name], [content], [len(content)])
    session = _session(path, path.read_bytes(), options)
    check_owner(path, session.get_modelmeta().custom_metadata_map, owner, content)
    return session


def check_owner(path: Path, metadata: Mapping[str, str], owner: Path, content: bytes) -> None:
    """CompressError when the graph in `path` was made for other weights than the `content` of the file `owner`."""
    if metadata.get(WEIGHTS) != hashlib.sha256(content).hexdigest():
        raise CompressError(f"{path}: made for another {owner.name} than the one beside it, or one of them is damaged")


def _session(path: Path, model: str | bytes, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Of `path`, which is `model`'s name or content."""
    import onnxruntime

    try:
        return onnxruntime.InferenceSession(
            model,
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["SkipLayerNormFusion"],
            enable_fallback=0,  # it would print to stdout, then retry without these options
        )
    except Exception as error:  # the binding's own types share no base but Exception
        reason = " ".join(str(error).split())
        if "NOT_IMPLEMENTED" in reason:
            version = f"onnxruntime {onnxruntime.__version__}"
            raise CompressError(f"{path}: {version} has no kernel here for an operator of it: {reason}") from None
        raise CompressError(f"{path}: ONNX Runtime cannot load it: {reason}") from None
