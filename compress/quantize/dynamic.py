"""ONNX Runtime's dynamic quantization: int8 weights in the file, activations' ranges taken at every run."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import onnx
from onnx import ModelProto

from ..spec.stages import Quantize


def quantize_dynamic(model: ModelProto, spec: Quantize, keep_fp32: tuple[str, ...]) -> ModelProto:
    """Signed int8 weights (symmetric, per output channel), unsigned int8 activations (per tensor).

    That is the pair the CPU's dot-product instructions take. AVX2 alone sums pairs of products with
    16-bit saturation: `reduce_range` keeps weights to 7 bits, which never saturate, at some cost in accuracy.
    """
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization import quantize_dynamic as quantize

    # A Gemm is split into `<name>_MatMul` and an Add before names are compared: exclude both spellings.
    names = [spelling for name in keep_fp32 for spelling in (name, f"{name}_MatMul")]
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it recommends a pre-processing that undoes the shared weights
    try:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "int8.onnx"
            quantize(
                model,
                target,
                op_types_to_quantize=["MatMul", "Gather"] if spec.embeddings else ["MatMul"],
                per_channel=spec.per_channel,
                reduce_range=spec.reduce_range,
                weight_type=QuantType.QInt8,
                nodes_to_exclude=names,
                # Without it, a tensor whose type shape inference does not know is an error.
                extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
            )
            return onnx.load(target)
    finally:
        root.setLevel(level)
