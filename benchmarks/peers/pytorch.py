"""PyTorch: eager and compiled, in fp32 and bf16, and dynamic int8 of the linear layers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from heads import class_name, side_by_side

ENVIRONMENT = "pytorch"
PACKAGES = ("torch", "transformers")
VARIANTS = {
    "PyTorch eager": "transformers, attn_implementation=sdpa, fp32",
    "PyTorch compiled": "the same with torch.compile: of fixed shapes at batch 1, of dynamic shapes above",
    "PyTorch eager bf16": "as `PyTorch eager`, the model in bf16",
    "PyTorch compiled bf16": "as `PyTorch compiled`, the model in bf16",
    "PyTorch dynamic int8": "torch.ao.quantization.quantize_dynamic of the linear layers, eager",
}
NEEDS_BF16 = ("PyTorch eager bf16", "PyTorch compiled bf16")


def convert(variant: str, model: Path, out: Path) -> None:
    """Link the checkpoint, which needs no conversion."""
    (out / "checkpoint").symlink_to(model.absolute() / "checkpoint")


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    import torch
    import transformers

    torch.set_num_threads(threads)
    kind = torch.bfloat16 if variant in NEEDS_BF16 else torch.float32
    model = getattr(transformers, class_name(out / "checkpoint"))
    model = model.from_pretrained(out / "checkpoint", attn_implementation="sdpa", dtype=kind).eval()
    if "int8" in variant:
        return _predictor(torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8))
    return _compiled(model) if "compiled" in variant else _predictor(model)


def _compiled(model: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    import torch

    fixed, dynamic = (_predictor(torch.compile(model, dynamic=dynamic)) for dynamic in (False, True))
    return lambda ids, mask: (fixed if len(ids) == 1 else dynamic)(ids, mask)


def _predictor(model: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    import torch

    def predict(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            answer = model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
        return side_by_side([one.float().numpy() for one in answer.to_tuple()])

    return predict
