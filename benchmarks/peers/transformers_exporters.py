"""transformers' own exporter to ONNX (`transformers.exporters`) with ONNX Runtime's quantization as its quantizer."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from heads import class_name
from inputs import padded, ragged_lengths
from onnx_session import open_default, predictor

ENVIRONMENT = "transformers"
PACKAGES = ("transformers", "torch", "onnxscript", "onnxruntime", "onnx")
_CALIBRATION = 96  # sequences, as many as ours
_EXPORTER = "transformers.exporters: OnnxExporter with OnnxConfig(dynamic=True"
VARIANTS = {
    "transformers dynamic": f"{_EXPORTER}, ort_fusions='cpu'), OnnxRuntimeQuantizer with OnnxRuntimeDynamicConfig()",
    "transformers static": f"{_EXPORTER}), OnnxRuntimeQuantizer with OnnxRuntimeStaticConfig (per_channel, uint8 activations; MatMul "
    f"and Gemm alone), in QDQ, ranges from {_CALIBRATION} sequences of random ids",
}


def convert(variant: str, model: Path, out: Path) -> None:
    import transformers

    exporters = _library()
    checkpoint = model / "checkpoint"
    source = getattr(transformers, class_name(checkpoint)).from_pretrained(checkpoint).eval()
    # Static quantization does not accept the fused graph: onnx's shape inference, its first step, rejects it.
    fusions = "cpu" if variant.endswith("dynamic") else None
    config = exporters.OnnxConfig(dynamic=True, ort_fusions=fusions, quantizer=_quantizer(variant))
    exporters.OnnxExporter().export(source, _inputs([12, 7]), config=config).save_pretrained(out)


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return predictor(open_default(out / "model.onnx", threads))


def _quantizer(variant: str) -> Any:
    exporters = _library()
    if variant.endswith("dynamic"):
        return exporters.OnnxRuntimeQuantizer(exporters.OnnxRuntimeDynamicConfig())
    # The default quantizes all operators, softmax and normalization included; the answers then correlate at 0.5 with torch's.
    # ONNX Runtime recommends uint8 by int8 for x86.
    quantization = importlib.import_module("onnxruntime.quantization")
    static = exporters.OnnxRuntimeStaticConfig(
        per_channel=True, op_types_to_quantize=["MatMul", "Gemm"], activation_type=quantization.QuantType.QUInt8
    )
    samples = [_inputs([length]) for length in ragged_lengths(_CALIBRATION)]
    return exporters.OnnxRuntimeQuantizer(static, samples)


def _library() -> Any:
    """Import it dynamically: its names are created on access, which a type checker does not see."""
    return importlib.import_module("transformers.exporters")


def _inputs(lengths: list[int]) -> dict[str, Any]:
    import torch

    batch = padded(lengths, seed=lengths[0])
    return {"input_ids": torch.from_numpy(batch.ids), "attention_mask": torch.from_numpy(batch.mask)}
