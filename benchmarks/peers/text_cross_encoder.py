"""sentence-transformers' CrossEncoder with its ONNX backend. It accepts only pairs: a text is passed as its two halves, which adds one
token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from onnx_session import default_options

ENVIRONMENT = "sentence_transformers"
PACKAGES = ("sentence-transformers", "optimum-onnx", "transformers", "torch", "onnxruntime", "tokenizers")
_OURS, _FP32 = "CrossEncoder, our int8 file", "CrossEncoder, ONNX fp32"
VARIANTS = {
    _OURS: "`CrossEncoder(backend='onnx').predict` of pairs, the halves of each text, on the file that `Classifier int8` runs",
    _FP32: "the same on optimum's export",
}
_FILES = {_OURS: ("bundle", "onnx/model_quantized.onnx"), _FP32: ("optimum-fp32", "model.onnx")}
WAYS = {"32": "no setting: sorted by length, 32 in a batch", "8": "batch_size=8", "1": "batch_size=1"}


def open_texts(variant: str, model: Path, threads: int) -> Callable[[Sequence[str], str], list[float]]:
    import sentence_transformers  # pyright: ignore[reportMissingImports]

    folder, name = _FILES[variant]
    encoder = sentence_transformers.CrossEncoder(
        str(model / folder),
        backend="onnx",
        device="cpu",
        model_kwargs={"file_name": name, "session_options": default_options(threads), "export": False},
    )

    def answer(texts: Sequence[str], way: str) -> list[float]:
        pairs = [_halves(text) for text in texts]
        probabilities = encoder.predict(pairs, batch_size=int(way), apply_softmax=True, show_progress_bar=False)
        return probabilities[:, 1].tolist()

    return answer


def _halves(text: str) -> tuple[str, str]:
    words = text.split()
    middle = (len(words) + 1) // 2
    return " ".join(words[:middle]), " ".join(words[middle:])
