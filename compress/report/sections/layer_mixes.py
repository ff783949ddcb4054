"""The mix of layers that a student learnt for its vectors."""

from __future__ import annotations

from collections.abc import Sequence

from ..grouping.groups import Task, Variant
from ..text import numbers
from ..text.words import join_words


def mix_sentences(task: Task) -> list[str]:
    """Return a sentence for each recipe whose student has a mix, for its first seed."""
    mixes = ((variant, _last_mix(variant)) for variant in task.variants)
    return [_sentence(variant, mix) for variant, mix in mixes if mix is not None]


def _last_mix(variant: Variant) -> Sequence[float] | None:
    mixes = [record.info["layer_mix"] for record in variant.first.stages if "layer_mix" in record.info]
    return mixes[-1] if mixes else None


def _sentence(variant: Variant, mix: Sequence[float]) -> str:
    names = ["the embeddings", *(f"layer {number}" for number in range(1, len(mix)))]
    shares = [f"{numbers.percent(share)} of {name}" for name, share in zip(names, mix, strict=True)]
    seed = f" (seed {variant.first.seed})" if len(variant.runs) > 1 else ""
    return f"{variant.label}: the student's vectors are a mix of its states that it learnt: {join_words(shares)}{seed}."
