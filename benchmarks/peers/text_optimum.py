"""optimum-onnx: its model class in a pipeline of transformers, with our int8 file and with its own files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from onnx_session import default_options
from text_pipelines import WAYS, answering

__all__ = ["WAYS"]

ENVIRONMENT = "optimum"
PACKAGES = ("optimum-onnx", "optimum", "transformers", "torch", "onnxruntime", "tokenizers")
_OURS, _OWN, _FP32 = "optimum pipeline, our int8 file", "optimum pipeline, its int8", "optimum pipeline, its fp32"
VARIANTS = {
    _OURS: "pipeline('text-classification') with ORTModelForSequenceClassification on the file that `Classifier int8` runs",
    _OWN: "the same on optimum's export, quantized by ORTQuantizer with AutoQuantizationConfig.avx512_vnni(is_static=False, "
    "per_channel=True)",
    _FP32: "the same on optimum's export",
}
_FILES = {
    _OURS: ("bundle", "onnx", "model_quantized.onnx"),
    _OWN: ("optimum-int8", "", "model_quantized.onnx"),
    _FP32: ("optimum-fp32", "", "model.onnx"),
}


def make(model: Path) -> None:
    """Write optimum's own files into folders of `model`, the fp32 one with the tokenizer."""
    import transformers
    from optimum import onnxruntime  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

    exported = onnxruntime.ORTModelForSequenceClassification.from_pretrained(model / "checkpoint", export=True)
    exported.save_pretrained(model / "optimum-fp32")
    transformers.AutoTokenizer.from_pretrained(model / "checkpoint").save_pretrained(model / "optimum-fp32")
    how = onnxruntime.AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=True)
    onnxruntime.ORTQuantizer.from_pretrained(exported).quantize(
        save_dir=model / "optimum-int8", quantization_config=how
    )


def open_texts(variant: str, model: Path, threads: int) -> Callable[[Sequence[str], str], list[float]]:
    import transformers
    from optimum import onnxruntime  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

    folder, subfolder, name = _FILES[variant]
    opened = onnxruntime.ORTModelForSequenceClassification.from_pretrained(
        model / folder, subfolder=subfolder, file_name=name, session_options=default_options(threads)
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(model / "checkpoint")
    return answering(transformers.pipeline("text-classification", model=opened, tokenizer=tokenizer))
