"""transformers' pipeline, with torch in fp32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from text_pipelines import WAYS, answering

__all__ = ["WAYS"]

ENVIRONMENT = "pytorch"
PACKAGES = ("transformers", "torch", "tokenizers")
VARIANTS = {"transformers pipeline, torch fp32": "pipeline('text-classification') on the checkpoint"}


def open_texts(variant: str, model: Path, threads: int) -> Callable[[Sequence[str], str], list[float]]:
    import torch
    import transformers

    torch.set_num_threads(threads)
    return answering(transformers.pipeline("text-classification", model=str(model / "checkpoint"), device="cpu"))
