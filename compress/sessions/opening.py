"""Open an ONNX Runtime session: check the file first, and use the same options everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CompressError
from ..files.regular import read_regular
from ..machine import usable_cores
from .checks import check_external_range, check_graph_file, check_inputs, check_owner, check_version, parse_structure

if TYPE_CHECKING:
    import onnxruntime

_MOST = 2**31  # bytes of an ONNX file: protobuf's limit


def session_options(threads: int | None = None, spinning: bool = False) -> onnxruntime.SessionOptions:
    """Return options with `threads` intra-op threads (default: the usable cores) and one inter-op; waiting threads do not
    spin unless `spinning`.

    Spinning costs up to twice the time on a busy machine. The memory arena and pattern stay on, as by default: no gain
    without them was reproducible (figures: docs/runtime.md).
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads or usable_cores())
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
    """Return a CPU session with `session_options`; `configure` may change them.

    SkipLayerNormalization stays unfused (its CPU kernel is slower than what it replaces). CompressError: the file.
    """
    check_version(path, check_graph_file(path))
    options = session_options(threads)
    if configure:
        configure(options)
    return _session(path, str(path), options)


def open_sharing(path: Path, owner: Path, threads: int | None = None) -> onnxruntime.InferenceSession:
    """Like `open_session`, for a graph whose weights are in the model file `owner` beside it. Both files are read once, so
    later changes to them have no effect. CompressError: the files, or a graph that was made for another `owner`."""
    graph = read_regular(path, "an ONNX file", _MOST)
    structure = parse_structure(path, graph)
    if other_files := sorted(structure.locations - {owner.name}):
        raise CompressError(f"{path}: expected its weights in {owner.name}, found some in {other_files[0][:200]!r}")
    check_inputs(path, structure)
    check_version(path, structure)
    content = read_regular(owner, "an ONNX file", _MOST)
    for external in structure.externals:
        check_external_range(path, external, len(content))
    options = session_options(threads)
    options.add_external_initializers_from_files_in_memory([owner.name], [content], [len(content)])
    session = _session(path, graph, options)
    check_owner(path, session.get_modelmeta().custom_metadata_map, owner, content)
    return session


def _session(path: Path, model: str | bytes, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Return a session of `model`, the name or the content of `path`."""
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
