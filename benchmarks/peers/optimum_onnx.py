"""optimum-onnx: its exporter, then ORTQuantizer with its configuration for an instruction set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from heads import head_of
from onnx_session import open_default, predictor

ENVIRONMENT = "optimum"
PACKAGES = ("optimum-onnx", "optimum", "transformers", "torch", "onnxruntime", "onnx")
_CONFIGURATIONS = {"optimum avx512_vnni": "avx512_vnni", "optimum avx2": "avx2"}
VARIANTS = {
    name: f"ORTModelFor…(export=True) of the checkpoint's kind, ORTQuantizer with AutoQuantizationConfig.{configuration}"
    "(is_static=False, per_channel=True); its file is run by ONNX Runtime without optimum's wrapper"
    for name, configuration in _CONFIGURATIONS.items()
}


def convert(variant: str, model: Path, out: Path) -> None:
    from optimum import onnxruntime  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

    kind = getattr(onnxruntime, f"ORTModel{head_of(model / 'checkpoint').suffix}")
    exported = kind.from_pretrained(model / "checkpoint", export=True)
    configuration = getattr(onnxruntime.AutoQuantizationConfig, _CONFIGURATIONS[variant])(
        is_static=False, per_channel=True
    )
    onnxruntime.ORTQuantizer.from_pretrained(exported).quantize(save_dir=out, quantization_config=configuration)


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return predictor(open_default(out / "model_quantized.onnx", threads))
