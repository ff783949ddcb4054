"""optimum-onnx: its exporter, then ORTQuantizer with its configuration for an instruction set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx_session import open_default, predictor

ENVIRONMENT = "optimum"
PACKAGES = ("optimum-onnx", "optimum", "transformers", "torch", "onnxruntime", "onnx")
_CONFIGURATIONS = {"optimum avx512_vnni": "avx512_vnni", "optimum avx2": "avx2"}
VARIANTS = {
    name: f"ORTModelForSequenceClassification(export=True), ORTQuantizer with AutoQuantizationConfig.{configuration}"
    "(is_static=False, per_channel=True); its file is run by ONNX Runtime without optimum's wrapper"
    for name, configuration in _CONFIGURATIONS.items()
}


def convert(variant: str, model: Path, out: Path) -> None:
    from optimum.onnxruntime import (  # pyright: ignore[reportMissingImports]
        AutoQuantizationConfig,
        ORTModelForSequenceClassification,
        ORTQuantizer,
    )

    exported = ORTModelForSequenceClassification.from_pretrained(model / "checkpoint", export=True)
    configuration = getattr(AutoQuantizationConfig, _CONFIGURATIONS[variant])(is_static=False, per_channel=True)
    ORTQuantizer.from_pretrained(exported).quantize(save_dir=out, quantization_config=configuration)


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return predictor(open_default(out / "model_quantized.onnx", threads))
