"""Our `Classifier`: tokenizer, sorting, batches and model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

ENVIRONMENT = ""
PACKAGES = ("bert-compress", "onnxruntime", "tokenizers", "numpy")
VARIANTS = {
    "Classifier int8": "`Classifier(folder).predict`, the int8 file that `compress run` makes by default, and its unpadded form",
    "Classifier fp32": "the same with precision=fp32",
}
WAYS = {"predict": "no setting"}


def open_texts(variant: str, model: Path, threads: int) -> Callable[[Sequence[str], str], list[float]]:
    from compress.runtime import Classifier

    classifier = Classifier(model / "bundle", precision=variant.split()[-1], threads=threads)
    second = classifier.labels[1]

    def answer(texts: Sequence[str], way: str) -> list[float]:
        return [found.scores[second] for found in classifier.predict(texts)]

    return answer
