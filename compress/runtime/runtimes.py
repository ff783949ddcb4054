"""Open a folder's model file with a runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..errors import CompressError
from .engine import Engine, OnnxRuntime
from .folder import find_model
from .openvino import OpenVino, find_openvino_model

HINTS = ("f32", "bf16")


def open_engine(
    folder: Path,
    precision: str | None,
    threads: int | None,
    runtime: str,
    hint: str | None,
    check: Callable[[Path], None],
) -> tuple[str, Engine]:
    """Return (precision of the file, the opened file), after `check` has seen it. CompressError: the argument, file or package that is
    missing or wrong."""
    if runtime == "onnxruntime":
        if hint is not None:
            raise CompressError(
                f"precision_hint: found {hint!r}; only the runtime openvino has one, onnxruntime computes as the file says"
            )
        precision, path = find_model(folder, precision)
        check(path)
        return precision, OnnxRuntime(path, threads)
    if runtime != "openvino":
        raise CompressError(f"runtime: expected onnxruntime or openvino, found {runtime!r}")
    if hint not in (None, *HINTS):
        raise CompressError(f"precision_hint: expected {' or '.join(HINTS)}, found {hint!r}")
    precision, path = find_openvino_model(folder, precision)
    check(path)
    return precision, OpenVino(path, threads, hint or "f32")
