"""Open an ONNX Runtime session on a file that may not be ours: checked first, same options everywhere."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import CompressError
from .machine import usable_cores
from .regular import open_regular, read_regular
from .requirements import requirements
from .structure import Bytes, Call, External, Structure, structure

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

_MOST = 2**31  # bytes of an ONNX file: protobuf's limit
WEIGHTS = "weights_sha256"  # metadata of a graph whose weights are in another file: that file's
SPAN_LOGITS = (
    "start_logits",
    "end_logits",
)  # outputs of a graph that finds answers, as transformers and optimum call them
VECTORS = "sentence_embedding"  # the output of a graph that turns texts into vectors, as sentence-transformers calls it
_ANSWERS = (("logits",), SPAN_LOGITS, (VECTORS,))


def read_structure(path: Path) -> Structure:
    """Of a graph file, never its weights (milliseconds). CompressError: a missing, truncated or foreign file."""
    with open_regular(path, "an ONNX file") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise CompressError(f"{path}: expected an ONNX file, found an empty file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _structure(path, data)


def _structure(path: Path, data: Bytes) -> Structure:
    try:
        found = structure(data)
    except ValueError as error:
        reason = "text in it is no UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise CompressError(f"{path}: not an ONNX file, or a truncated one ({reason}); make it again") from None
    if not found.complete:
        raise CompressError(f"{path}: expected an ONNX model, found no graph in it; make it again")
    return found


def check_graph_file(path: Path) -> Structure:
    """What may be handed to ONNX Runtime. CompressError: what `read_structure` says, weights outside the model's folder or
    beyond their file's end, and inputs left out where none may be, at which ONNX Runtime crashes."""
    path = Path(path)
    found = read_structure(path)
    for external in found.externals:
        _check_external(path, external)
    check_inputs(path, found)
    return found


def _check_external(path: Path, external: External) -> None:
    """Refuse what leaves the folder: absolute, `..`, or through a symbolic link; what is no file there, or less than it."""
    locations = external.said.get("location", [])
    for location in locations:
        try:
            found = _size_beside(path, location)
        except (OSError, ValueError):  # a name that is too long, or none
            found = None
        if found is None:
            raise CompressError(
                f"{path}: external data: expected the file {location[:200]!r} beside the model, found none"
            )
        check_stretch(path, external, found)
    if len(locations) != 1:
        raise CompressError(
            f"{path}: external data of {external.tensor[:200]!r}: expected one location, found {len(locations)}"
        )


def _size_beside(path: Path, location: str) -> int | None:
    """Bytes of the file at `location`, from the model's folder; None: there is none. CompressError: it is not in there."""
    plain = "\0" not in location and not Path(location).is_absolute() and ".." not in Path(location).parts
    target = path.parent / (location if plain else "")
    if not plain or not target.resolve().is_relative_to(path.parent.resolve()) or target.is_symlink():
        raise CompressError(
            f"{path}: external data at {location[:200]!r} is outside the model's folder: refused; "
            "use a model whose weights are in the file or beside it"
        )
    return target.stat().st_size if target.is_file() else None


def check_stretch(path: Path, external: External, size: int) -> None:
    """CompressError: an `external` tensor of the graph in `path` that is not within the `size` bytes of its file."""
    said = {name: external.said.get(name, ["0"]) for name in ("offset", "length")}
    for name, values in said.items():
        if len(values) != 1 or not re.fullmatch(r"[0-9]{1,18}", values[0]):
            raise CompressError(
                f"{path}: external data of {external.tensor[:200]!r}: {name}: expected a number of bytes, found {values[0][:40]!r}"
            )
    end = int(said["offset"][0]) + int(said["length"][0])
    if end > size:
        raise CompressError(
            f"{path}: external data of {external.tensor[:200]!r} ends at byte {end:,} of a file of {size:,} bytes: refused"
        )


def check_version(path: Path, found: Structure) -> None:
    """CompressError: the graph in `path` needs a newer ONNX Runtime than this. It names a file beside it that would open."""
    import onnxruntime

    needed, version = requirements(found), onnxruntime.__version__
    if needed.allow(version):
        return
    others = (
        each for each in sorted(path.parent.glob("*.onnx")) if each != path and not each.stem.endswith("_unpadded")
    )
    opening = [other.name for other in others if _allows(other, version)]
    advice = f"; {opening[0]} beside it opens with that" if opening else "; export with opset: 20 for older ones"
    raise CompressError(f"{path}: needs {needed}, found onnxruntime {version}{advice}")


def _allows(path: Path, version: str) -> bool:
    """Whether `version` of ONNX Runtime opens the file at `path`, as far as is known: not where it is broken, or no ONNX file."""
    try:
        return requirements(read_structure(path)).allow(version)
    except CompressError:
        return False


def check_inputs(path: Path, found: Structure) -> None:
    """CompressError: an input without a name that its operator does not say may be left out."""
    for call in found.calls:
        given = found.functions.get((call.domain, call.kind))
        if given is not None and (len(call.inputs) != given or "" in call.inputs):
            raise CompressError(
                f"{path}: {call}: expected the {given} inputs of the function, found some left out: refused"
            )
        empty = [position for position, name in enumerate(call.inputs) if not name]
        if empty and given is None:
            _check_left_out(path, call, empty)


def _check_left_out(path: Path, call: Call, positions: list[int]) -> None:
    kinds = [kind for kind in _operators().get((call.domain, call.kind), ()) if kind.since_version <= call.version]
    if not kinds:
        return  # ONNX Runtime knows no such operator, and says so
    inputs = max(kinds, key=lambda kind: kind.since_version).inputs
    for position in positions:
        parameter = inputs[min(position, len(inputs) - 1)] if inputs else None
        if parameter is None or parameter.option.name != "Optional":
            raise CompressError(f"{path}: {call}: input {position} has no name, and it may not be left out: refused")


@cache
def _operators() -> dict[tuple[str, str], list[Any]]:
    """(domain, name) -> what ONNX Runtime knows of the operator, for each version that changed it."""
    from onnxruntime.capi import _pybind_state

    schemas: Any = _pybind_state  # its stub leaves them out
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for kind in schemas.get_all_operator_schema():
        found[kind.domain, kind.name].append(kind)
    return found


def session_options(threads: int | None = None, spinning: bool = False) -> onnxruntime.SessionOptions:
    """`threads` intra-op (default: the usable cores), one inter-op; threads that wait do not spin.

    Threads that spin cost up to twice the time on a busy machine. The memory arena and pattern stay on, as
    they are by default: no gain without them held from run to run (figures: docs/runtime.md).
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or usable_cores()
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # fatal: ONNX Runtime raises all other errors, and would also write them to stderr
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
    check_version(path, check_graph_file(path))
    options = session_options(threads)
    if configure:
        configure(options)
    return _session(path, str(path), options)


def open_sharing(path: Path, owner: Path, threads: int | None = None) -> onnxruntime.InferenceSession:
    """As `open_session`, of a graph whose weights are in the model file `owner` beside it. Both are read once, and what
    happens to the files afterwards is no matter. CompressError: the files, or a graph that was made for another `owner`."""
    graph = read_regular(path, "an ONNX file", _MOST)
    found = _structure(path, graph)
    if strange := sorted(found.locations - {owner.name}):
        raise CompressError(f"{path}: expected its weights in {owner.name}, found some in {strange[0][:200]!r}")
    check_inputs(path, found)
    check_version(path, found)
    content = read_regular(owner, "an ONNX file", _MOST)
    for external in found.externals:
        check_stretch(path, external, len(content))
    options = session_options(threads)
    options.add_external_initializers_from_files_in_memory([owner.name], [content], [len(content)])
    session = _session(path, graph, options)
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


def wanted_outputs(names: Sequence[str]) -> list[str]:
    """Of a graph's outputs, of which there is one or more, those that answer: `logits`, those of the start and of the end of a span,
    or vectors; of a graph of others, its first."""
    return next((list(wanted) for wanted in _ANSWERS if set(wanted) <= set(names)), list(names[:1]))


def joined(outputs: Sequence[np.ndarray]) -> np.ndarray:
    """What `wanted_outputs` gave as one array: of spans [batch, length] and [batch, length], side by side: [batch, length, 2]."""
    import numpy as np

    return outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=-1)


def graph_logits(names: Sequence[str], run: Callable[[Sequence[str]], Sequence[Any]]) -> np.ndarray:
    """What a graph answers whose outputs have these `names`; `run` gives those that it asks for."""
    import numpy as np

    return joined([*map(np.asarray, run(wanted_outputs(names)))])


def run_logits(session: onnxruntime.InferenceSession, feed: Mapping[str, np.ndarray]) -> np.ndarray:
    """`graph_logits` of a session for the inputs `feed`, among which may be others than the graph's."""
    given = {value.name: feed[value.name] for value in session.get_inputs()}
    return graph_logits([value.name for value in session.get_outputs()], lambda wanted: session.run([*wanted], given))


def real_rows(outputs: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of outputs [batch, length, size] those of the tokens that `mask` [batch, length] says are there, [token, size]; others as they
    are."""
    return outputs[mask.astype(bool)] if outputs.ndim == 3 and outputs.shape[:2] == mask.shape else outputs
