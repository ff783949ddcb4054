"""neural-compressor's static int8 of a PyTorch program (PT2E), compiled by Inductor as in its documentation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from heads import class_name, side_by_side
from inputs import Batch, padded, ragged_lengths

ENVIRONMENT = "neural_compressor"
PACKAGES = ("neural-compressor", "torch", "torchao", "transformers")
_CALIBRATION = 96  # sequences, as many as ours
VARIANTS = {
    "neural-compressor static": "export, prepare with get_default_static_config(), convert, torch.compile with freezing: of fixed shapes "
    f"at batch 1, of dynamic shapes above; ranges from {_CALIBRATION} sequences of random ids"
}


def convert(variant: str, model: Path, out: Path) -> None:
    import torch

    export, quantization = map(_library, ("export", "quantization"))
    examples, shapes = _tensors(padded([12, 7])), _shapes()
    exported = export.export(_plain(model / "checkpoint"), examples, dynamic_shapes=shapes)
    if exported is None:
        raise RuntimeError("neural-compressor cannot trace the model; its log says why")
    with torch.no_grad():
        prepared = quantization.prepare(exported, quantization.get_default_static_config())
        for length in ragged_lengths(_CALIBRATION):
            prepared(*_tensors(padded([length], seed=length)))
        converted = quantization.convert(prepared)
        torch.export.save(torch.export.export(converted, examples, dynamic_shapes=shapes), out / "model.pt2")


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    import torch
    import torch._inductor.config
    import torchao.quantization.pt2e  # noqa: F401  (the operators of the saved program)  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(threads)
    torch._inductor.config.freezing = True
    model = torch.export.load(out / "model.pt2").module()
    fixed, dynamic = (torch.compile(model, dynamic=dynamic) for dynamic in (False, True))

    def predict(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            answer: Any = (fixed if len(ids) == 1 else dynamic)(*_tensors(Batch(ids, mask)))
        return side_by_side([one.numpy() for one in answer])

    return predict


def _library(part: str) -> Any:
    """Import without types, because the declared ones differ from those it accepts."""
    return importlib.import_module(f"neural_compressor.torch.{part}")


def _plain(checkpoint: Path) -> Any:
    """Return the model as a module that maps ids and mask to a tuple of logits."""
    import torch
    import transformers

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = getattr(transformers, class_name(checkpoint)).from_pretrained(checkpoint)

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return self.model(input_ids=ids, attention_mask=mask).to_tuple()

    return Logits().eval()


def _shapes() -> tuple[dict[int, Any], ...]:
    import torch

    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=512)
    return ({0: batch, 1: length},) * 2


def _tensors(batch: Batch) -> tuple[Any, ...]:
    import torch

    return torch.from_numpy(batch.ids), torch.from_numpy(batch.mask)
