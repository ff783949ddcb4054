"""Code shared by the candidates that use transformers' pipelines. Needs only transformers, in either environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

WAYS = {
    "1": "no setting: the texts one after another, as the list comes",
    "8": "batch_size=8, in the order given",
    "32": "batch_size=32, in the order given",
    "32 sorted": "batch_size=32, of texts that the caller sorts by their characters first, and puts back in order",
}


def answering(pipeline: Any) -> Callable[[Sequence[str], str], list[float]]:
    """Return a text-classification pipeline as a function, with truncation at the model's length, like ours."""
    second = pipeline.model.config.id2label[1]

    def scores(texts: Sequence[str], size: int) -> list[float]:
        outputs = pipeline([*texts], batch_size=size, truncation=True, top_k=None)
        return [next(row["score"] for row in rows if row["label"] == second) for rows in outputs]

    def answer(texts: Sequence[str], way: str) -> list[float]:
        size, *by_length = way.split()
        if not by_length:
            return scores(texts, int(size))
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        probabilities = dict(zip(order, scores([texts[index] for index in order], int(size)), strict=True))
        return [probabilities[index] for index in range(len(texts))]

    return answer
