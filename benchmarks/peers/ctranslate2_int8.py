"""CTranslate2: its converter and its encoder in int8. It has no heads, so the layers after the encoder are numpy here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

ENVIRONMENT = "ctranslate2"
PACKAGES = ("ctranslate2", "transformers", "torch")
VARIANTS = {
    "CTranslate2 int8": "TransformersConverter(quantization=int8), run with compute_type=int8; it is an encoder and at "
    "most a pooler, what follows is ours in numpy"
}
Weights = dict[str, np.ndarray]


def convert(variant: str, model: Path, out: Path) -> None:
    from ctranslate2.converters import TransformersConverter  # pyright: ignore[reportMissingImports]
    from safetensors.numpy import load_file, save_file

    TransformersConverter(str(model / "checkpoint")).convert(str(out), quantization="int8", force=True)
    weights = load_file(model / "checkpoint/model.safetensors")
    save_file(
        {name: weights[name] for name in weights if "classifier." in name or "qa_outputs." in name},
        out / "head.safetensors",
    )


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    import ctranslate2  # pyright: ignore[reportMissingImports]
    from safetensors.numpy import load_file

    encoder = ctranslate2.Encoder(str(out), device="cpu", compute_type="int8", intra_threads=threads, inter_threads=1)
    head = load_file(out / "head.safetensors")

    def predict(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        view = ctranslate2.StorageView.from_array
        lengths = mask.sum(1, dtype=np.int32)
        answer = encoder.forward_batch(view(ids.astype(np.int32)), view(lengths))
        if answer.pooler_output is not None:
            return _linear(head, "classifier", np.array(answer.pooler_output))
        states = np.array(answer.last_hidden_state)
        if "pre_classifier.weight" not in head:
            return _linear(head, "qa_outputs" if "qa_outputs.weight" in head else "classifier", states)
        first = states[:, 0]
        return _linear(head, "classifier", np.maximum(_linear(head, "pre_classifier", first), 0))

    return predict


def _linear(weights: Weights, name: str, rows: np.ndarray) -> np.ndarray:
    return rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
