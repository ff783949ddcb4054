"""This project's files, in its own interpreter. Each further file is a line in VARIANTS and in MAKE; one for another runtime is a module
like the peers', with VARIANTS that start with "ours"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from heads import head_of
from inputs import padded, ragged_lengths
from onnx_session import predictor

from compress.spec.quantization import Quantize
from compress.spec.stages import Export

DEFAULT = "ours default"  # what `compress run` makes and `ship` ships by default
ENVIRONMENT = ""
PACKAGES = ("bert-compress", "onnxruntime", "onnx", "torch", "transformers")
_CALIBRATION = 96  # sequences, as many as OpenVINO's
VARIANTS = {
    DEFAULT: f"export and quantize without settings, as `compress run` does: the fast graph, method {Quantize().method}; "
    f"ranges and α from {_CALIBRATION} sequences of random ids",
    "ours default unpadded": "its unpadded form, which the runner takes for padded batches",
    "ours fast": "the fast graph with quantize.method=dynamic",
    "ours static": f"the same with quantize.method=static, ranges from the {_CALIBRATION} sequences",
    "ours unpadded": "the unpadded form of `ours static`",
    "ours QDQ": "the portable file of quantize.portable=true, in ONNX Runtime",
    "ours plain": "the plain graph with quantize.method=dynamic",
}


def _make(export: Export, how: Quantize, int8_format: str | None = None) -> Callable[[Path, Path], None]:
    def make(checkpoint: Path, out: Path) -> None:
        from compress.export import export_onnx
        from compress.quantize import quantize_onnx

        head, graph, opset = head_of(checkpoint), export.graph, export.opset
        export_onnx(checkpoint, out, graph=graph, opset=opset, task_name="none", labels=head.labels, kind=head.kind)
        quantize_onnx(out / "model.onnx", out, how, int8_format=int8_format, feeds=_feeds())

    return make


def _feeds() -> list[dict[str, np.ndarray]]:
    batches = [padded([length], seed=length) for length in ragged_lengths(_CALIBRATION)]
    return [
        {"input_ids": batch.ids, "attention_mask": batch.mask, "token_type_ids": np.zeros_like(batch.ids)}
        for batch in batches
    ]


# variant -> function that writes its int8 file for a checkpoint folder
MAKE = {
    DEFAULT: _make(Export(graph="fast"), Quantize()),
    "ours default unpadded": _make(Export(graph="fast"), Quantize()),
    "ours fast": _make(Export(graph="fast"), Quantize(method="dynamic")),
    "ours static": _make(Export(graph="fast"), Quantize(method="static")),
    "ours unpadded": _make(Export(graph="fast"), Quantize(method="static")),
    "ours QDQ": _make(Export(graph="fast"), Quantize(method="static"), "qdq"),
    "ours plain": _make(Export(graph="plain"), Quantize(method="dynamic")),
}
_FILES = {
    "ours QDQ": "model_qdq.onnx",
    **dict.fromkeys(("ours default unpadded", "ours unpadded"), "model_quantized_unpadded.onnx"),
}


def convert(variant: str, model: Path, out: Path) -> None:
    MAKE[variant](model / "checkpoint", out)


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    from compress.sessions.opening import open_session

    return predictor(open_session(out / _FILES.get(variant, "model_quantized.onnx"), threads))
