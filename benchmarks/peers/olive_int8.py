"""Olive's workflow for a BERT on a CPU: conversion, ONNX Runtime's transformer optimizer, quantization."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from heads import head_of
from inputs import padded, ragged_lengths
from onnx_session import open_default, predictor

ENVIRONMENT = "olive"
PACKAGES = ("olive-ai", "onnxruntime", "onnx", "torch", "transformers")
_CALIBRATION = 96  # sequences, as many as ours
_PASSES = "olive run with the passes OnnxConversion (dynamic), OrtTransformersOptimization (model_type=bert) and"
VARIANTS = {
    "Olive dynamic": f"{_PASSES} OnnxDynamicQuantization",
    "Olive static": f"{_PASSES} OnnxStaticQuantization (activation_type=uint8, per_channel, MatMul and Gemm), in QDQ, ranges from "
    f"{_CALIBRATION} sequences of random ids",
}
_TASKS = {"classification": "text-classification", "tagging": "token-classification", "span": "question-answering"}
_DATA = "random_ids"


def convert(variant: str, model: Path, out: Path) -> None:
    from olive.workflows import run  # pyright: ignore[reportMissingImports]

    checkpoint = (model / "checkpoint").absolute()
    quantization: dict[str, Any] = {"type": "OnnxDynamicQuantization"}
    data: list[dict[str, Any]] = []
    if variant.endswith("static"):
        _register_data()
        # ONNX Runtime recommends uint8 by int8, for matmuls only, for transformers on x86.
        quantization = {"type": "OnnxStaticQuantization", "activation_type": "uint8", "per_channel": True}
        quantization |= {"op_types_to_quantize": ["MatMul", "Gemm"], "data_config": _DATA}
        data = [{"name": _DATA, "load_dataset_config": {"type": _DATA}, "dataloader_config": {"batch_size": 1}}]
    run(
        {
            "input_model": {"type": "HfModel", "model_path": str(checkpoint), "task": _TASKS[head_of(checkpoint).kind]},
            "systems": {"here": {"type": "LocalSystem", "accelerators": [{"device": "cpu"}]}},
            "data_configs": data,
            "passes": {
                "conversion": {"type": "OnnxConversion", "dynamic": True},
                "optimization": {"type": "OrtTransformersOptimization", "model_type": "bert"},
                "quantization": quantization,
            },
            "host": "here",
            "target": "here",
            "evaluate_input_model": False,
            "cache_dir": str(out / "cache"),
            "output_dir": str(out / "workflow"),
        }
    )
    (path,) = (out / "workflow").rglob("model.onnx")
    for file in path.parent.glob("model.onnx*"):  # the weights may be in a file beside it
        shutil.move(file, out / file.name)
    shutil.rmtree(out / "cache")


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return predictor(open_default(out / "model.onnx", threads))


def _register_data() -> None:
    from olive.data.registry import Registry  # pyright: ignore[reportMissingImports]

    @Registry.register_dataset(_DATA)
    def random_ids(**_: Any) -> list[tuple[dict[str, np.ndarray], int]]:
        return [(_sample(length), 0) for length in ragged_lengths(_CALIBRATION)]


def _sample(length: int) -> dict[str, np.ndarray]:
    """Return one sequence without the batch axis, which the loader adds."""
    batch = padded([length], seed=length)
    return {"input_ids": batch.ids[0], "attention_mask": batch.mask[0], "token_type_ids": np.zeros_like(batch.ids[0])}
