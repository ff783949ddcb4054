"""ONNX Runtime's own dynamic quantization, as in its documentation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx_session import open_default, predictor

ENVIRONMENT = "onnxruntime"
PACKAGES = ("onnxruntime", "onnx")
VARIANTS = {
    "ONNX Runtime dynamic": "quant_pre_process (skip_symbolic_shape=True), then quantize_dynamic, on the plain ONNX file",
    "ONNX Runtime fp32": "the plain ONNX file",
}


def convert(variant: str, model: Path, out: Path) -> None:
    source, prepared, target = model / "plain/model.onnx", out / "prepared.onnx", out / "model.onnx"
    if variant.endswith("fp32"):
        target.write_bytes(source.read_bytes())
        return
    from onnxruntime.quantization import quant_pre_process, quantize_dynamic

    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    quantize_dynamic(prepared, target)


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return predictor(open_default(out / "model.onnx", threads))
