"""Our `Classifier`: tokenizer, sorting, batches and model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compress.runtime import Classifier

ENVIRONMENT = ""
PACKAGES = ("bert-compress", "onnxruntime", "tokenizers", "numpy")
VARIANTS = {
    "Classifier int8": "`Classifier(folder).predict`, the int8 file that `compress run` makes by default, and its unpadded form",
    "Classifier fp32": "the same with precision=fp32",
}
WAYS = {"predict": "no setting"}


def open_texts(variant: str, model: Path, threads: int) -> Callable[[Sequence[str], str], list[float]]:
    classifier = _classifier(variant, model, threads)
    second = classifier.labels[1]

    def answer(texts: Sequence[str], way: str) -> list[float]:
        return [prediction.scores[second] for prediction in classifier.predict(texts)]

    return answer


def part_times(variant: str, model: Path, text: str, repeats: int) -> dict[str, float]:
    """Return median microseconds of each part of `predict(text)` with one thread."""
    import text_parts

    return text_parts.part_times(_classifier(variant, model, 1), text, repeats)


def _classifier(variant: str, model: Path, threads: int) -> Classifier:
    from compress.runtime import Classifier

    return Classifier(model / "bundle", precision=variant.split()[-1], threads=threads)
