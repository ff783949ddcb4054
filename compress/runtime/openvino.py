"""OpenVINO as the runtime, for the same ONNX files. Imported only when it is requested."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import CompressError
from ..machine import usable_cores
from ..sessions.checks import check_graph_file
from ..sessions.outputs import stack_outputs, wanted_outputs
from .engine import known_inputs
from .folder import find_model


def find_openvino_model(folder: Path, precision: str | None) -> tuple[str, Path]:
    """Return (precision, file); if `precision` is None, the QDQ file if there is one, which OpenVINO runs in int8; else as `find_model`."""
    if precision is not None:
        return find_model(folder, precision)
    try:
        return find_model(folder, "qdq")
    except CompressError:
        return find_model(folder)


class CompiledFile(NamedTuple):
    """A file that OpenVINO compiled. `hint`: the precision that it computes in; `metadata`: the graph's own."""

    model: Any
    hint: str
    metadata: dict[str, str]
    version: str


def open_model(path: Path, threads: int, hint: str) -> CompiledFile:
    """Compile a file for one stream, with threads not pinned, as in ONNX Runtime. A CPU without bf16 computes in f32: if it has AVX-512,
    OpenVINO would emulate bf16, some fifty times slower than f32.

    CompressError: the package is missing, or the file is not one that OpenVINO accepts.
    """
    try:
        openvino: Any = importlib.import_module("openvino")  # this file has the name, too, for a type checker
    except ImportError:
        raise CompressError("runtime openvino: the package is not installed; pip install openvino") from None
    check_graph_file(path)
    core = openvino.Core()
    if hint == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        hint = "f32"
    settings = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    settings |= {"PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False}
    try:
        source = core.read_model(str(path))
        model = core.compile_model(source, "CPU", settings)
    except RuntimeError as error:
        raise CompressError(f"{path}: OpenVINO cannot load it: {' '.join(str(error).split())}") from None
    taken = model.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    metadata = source.get_rt_info("framework").value if source.has_rt_info("framework") else {}
    return CompiledFile(model, taken, metadata, f"openvino {openvino.__version__.partition('-')[0]}")


class OpenVino:
    """OpenVINO on the CPU. `hint` is the precision that it computes in. CompressError: see `open_model`."""

    def __init__(self, path: Path, threads: int | None, hint: str) -> None:
        self.path = path
        opened = open_model(path, threads or usable_cores(), hint)
        self._model = opened.model
        self.hint: str | None = opened.hint
        types = {"i64": np.int64, "i32": np.int32}
        inputs = {item.get_any_name(): item.get_element_type().get_type_name() for item in self._model.inputs}
        self.inputs = known_inputs(path, inputs, types)
        names = [min(item.get_names(), default=str(i)) for i, item in enumerate(self._model.outputs)]
        self._outputs = [names.index(name) for name in wanted_outputs(names)]
        self._requests = threading.local()  # a request holds the arrays of one call, so each thread has its own

    def run(self, batch: dict[str, np.ndarray]) -> np.ndarray:
        if not hasattr(self._requests, "request"):
            self._requests.request = self._model.create_infer_request()
        try:
            outputs = self._requests.request.infer(batch)
        except RuntimeError as error:
            raise CompressError(f"{self.path}: OpenVINO failed: {' '.join(str(error).split())}") from None
        return stack_outputs([np.array(outputs[place]) for place in self._outputs])
