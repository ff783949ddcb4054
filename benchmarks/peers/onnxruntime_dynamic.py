"""ONNX Runtime's own dynamic quantization, as its documentation shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx_session import open_default, predictor

ENVIRONMENT = "onnxruntime"
PACKAGES = ("onnxruntime", "onnx")
VARIANTS = {
    "ONNX Runtime dynamic": "quant_pre_process and quantize_dynamic on the plain ONNX file, both with their defaults",
    "ONNX Runtime dynamic, fused": "the BERT optimizer (optimize_model) on the plain ONNX file, then quantize_dynamic",
    "ONNX Runtime fp32": "the plain ONNX file",
}


def convert(variant: str, model: Path, out: Path) -> None:
    source, prepared, target = model / "plain/model.onnx", out / "prepared.onnx", out / "model.onnx"
    if variant.endswith("fp32"):
        target.write_bytes(source.read_bytes())
        return
    from onnxruntime.quantization import quantize_dynamic

    (_fuse if variant.endswith("fused") else _prepare)(source, prepared)
    # What the optimizer fuses has no type for the quantizer to read.
    quantize_dynamic(prepared, target, extra_options={"DefaultTensorType": 1})


def _prepare(source: Path, prepared: Path) -> None:
    from onnxruntime.quantization import quant_pre_process

    quant_pre_process(source, prepared, skip_symbolic_shape=True)


def _fuse(source: Path, prepared: Path) -> None:
    from onnxruntime.transformers.optimizer import optimize_model

    # 0 heads and 0 hidden: read from the graph.
    optimize_model(str(source), model_type="bert", num_heads=0, hidden_size=0).save_model_to_file(str(prepared))


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return predictor(open_default(out / "model.onnx", threads))
