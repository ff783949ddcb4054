"""The files of this project, in its own interpreter. Another file is another line in VARIANTS and in MAKE; one for
another runtime is a module like the peers', with VARIANTS that start with "ours"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx_session import predictor

ENVIRONMENT = ""
PACKAGES = ("bert-compress", "onnxruntime", "onnx", "torch", "transformers")
VARIANTS = {
    "ours fast": "export with graph: fast, quantize, as `compress run` does",
    "ours plain": "export with graph: plain, quantize",
}
LABELS = ("a", "b")


def _make(graph: str) -> Callable[[Path, Path], None]:
    def make(checkpoint: Path, out: Path) -> None:
        from compress.export import export_onnx
        from compress.quantize import quantize_onnx
        from compress.spec.stages import Quantize

        export_onnx(checkpoint, out, graph=graph, opset=20, task_name="none", labels=LABELS, kind="classification")
        quantize_onnx(out / "model.onnx", out, Quantize())

    return make


# variant -> writes model_quantized.onnx for a checkpoint folder
MAKE = {"ours fast": _make("fast"), "ours plain": _make("plain")}


def convert(variant: str, model: Path, out: Path) -> None:
    MAKE[variant](model / "checkpoint", out)


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    from compress.sessions import open_session

    return predictor(open_session(out / "model_quantized.onnx", threads))
