"""The files of this project, in its own interpreter. Another file is another line in VARIANTS and in MAKE; one for
another runtime is a module like the peers', with VARIANTS that start with "ours"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from inputs import padded, ragged_lengths
from onnx_session import predictor

ENVIRONMENT = ""
PACKAGES = ("bert-compress", "onnxruntime", "onnx", "torch", "transformers")
VARIANTS = {
    "ours fast": "export with graph: fast, quantize, as `compress run` does",
    "ours static": "the same with quantize.method=static, ranges from 96 sequences of random ids",
    "ours packed": "the packed form of `ours static`, which the runner takes for padded batches",
    "ours QDQ": "the portable file of quantize.portable=true, in ONNX Runtime",
    "ours plain": "export with graph: plain, quantize",
}
LABELS = ("a", "b")
_CALIBRATION = 96  # sequences, as many as OpenVINO's


def _make(graph: str, layout: str) -> Callable[[Path, Path], None]:
    def make(checkpoint: Path, out: Path) -> None:
        from compress.export import export_onnx
        from compress.quantize import quantize_onnx
        from compress.spec.quantization import Quantize

        export_onnx(checkpoint, out, graph=graph, opset=20, task_name="none", labels=LABELS, kind="classification")
        quantize_onnx(out / "model.onnx", out, Quantize(method="dynamic"), layout=layout, feeds=_feeds())

    return make


def _feeds() -> list[dict[str, np.ndarray]]:
    batches = [padded([length], seed=length) for length in ragged_lengths(_CALIBRATION)]
    return [
        {"input_ids": batch.ids, "attention_mask": batch.mask, "token_type_ids": np.zeros_like(batch.ids)}
        for batch in batches
    ]


# variant -> writes its int8 file for a checkpoint folder
MAKE = {
    "ours fast": _make("fast", "dynamic"),
    "ours static": _make("fast", "static"),
    "ours packed": _make("fast", "static"),
    "ours QDQ": _make("fast", "qdq"),
    "ours plain": _make("plain", "dynamic"),
}
_FILES = {"ours QDQ": "model_qdq.onnx", "ours packed": "model_quantized_packed.onnx"}


def convert(variant: str, model: Path, out: Path) -> None:
    MAKE[variant](model / "checkpoint", out)


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    from compress.sessions import open_session

    return predictor(open_session(out / _FILES.get(variant, "model_quantized.onnx"), threads))
