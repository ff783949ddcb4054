"""The teacher's layers that a student was copied from, if the run chose them."""

from __future__ import annotations

from ...results import StageRecord
from ..grouping.groups import Task, Variant
from ..text.words import join_words

_FIELDS = {"copied_layers", "copied_divergence", "spaced_divergence", "examples"}


def copied_sentences(task: Task) -> list[str]:
    """Return a sentence for each recipe whose run chose the student's layers, for its first seed."""
    records = ((variant, _record(variant)) for variant in task.variants)
    return [_sentence(variant, record) for variant, record in records if record is not None]


def _record(variant: Variant) -> StageRecord | None:
    return next((record for record in variant.first.stages if record.info.keys() >= _FIELDS), None)


def _sentence(variant: Variant, record: StageRecord) -> str:
    info = record.info
    layers = info["copied_layers"]
    which = f"layer{'s' if len(layers) > 1 else ''} {join_words([str(layer) for layer in layers])}"
    seed = f" (seed {variant.first.seed})" if len(variant.runs) > 1 else ""
    return (
        f"{variant.label}: the student starts from the teacher's {which}, counted from 0{seed}. On {info['examples']:,} training examples "
        f"their answers, before any training, diverge from the teacher's by {info['copied_divergence']:.3g}, and those of as many evenly "
        f"spaced layers by {info['spaced_divergence']:.3g}."
    )
