"""The threshold above which a model gives a label, or no answer: chosen on the tuning split, and saved with the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...models.checkpoints.folders import pad_id
from ...models.features.predict import collected_logits
from ...runtime.kinds.multilabel import sigmoid
from ...runtime.passages import THRESHOLD
from ...tasks import TASK_KINDS, EncodedSpans
from ..plan import Context
from .held_out import best_threshold
from .info import Threshold
from .labels import shift_outputs


def choose_threshold(model: Any, tokenizer: Any, context: Context, *, stage: str) -> Threshold:
    """Choose the threshold on the tuning split. The model's outputs are shifted so that it decides at 0, or one half; for questions the
    config stores the threshold for no answer. Empty if answers depend on none. `stage`: the node's id, for the notice."""
    data = context.task.data
    if TASK_KINDS[data.spec.kind].fit_threshold is None:
        return {}
    tuning = context.task.encoded("tuning", tokenizer, data.spec.max_length)
    logits = collected_logits(model, tuning, pad_id(model.config.to_dict()))
    threshold = best_threshold(data, logits, tuning.labels)
    if isinstance(tuning, EncodedSpans):
        return _set_no_answer(model, float(threshold), tuning, context, stage)
    shift_outputs(model, threshold)
    return _of_labels(
        dict(zip(data.labels, sigmoid(np.asarray(threshold)).tolist(), strict=True)), len(tuning), context, stage
    )


def _of_labels(thresholds: dict[str, float], texts: int, context: Context, stage: str) -> Threshold:
    """Report and return the probability thresholds by label, by which the model's outputs were shifted."""
    names = sorted(thresholds, key=lambda name: thresholds[name])
    least, most = thresholds[names[0]], thresholds[names[-1]]
    moved = f"by {texts:,} tuning texts; the model's outputs are shifted so that it becomes one half"
    if least == most:
        context.notice(f"{stage}: the best threshold for labels is a probability of {least:.2f}, {moved}")
        return {"threshold": least}
    context.notice(
        f"{stage}: each label has its own best threshold, a probability of {least:.2f} ({names[0]}) to "
        f"{most:.2f} ({names[-1]}), {moved}"
    )
    return {"thresholds": thresholds}


def _set_no_answer(model: Any, threshold: float, tuning: EncodedSpans, context: Context, stage: str) -> Threshold:
    """Store the threshold in the model's config; removed from it if no question lacks an answer, since there is nothing to choose."""
    if not tuning.impossible:
        vars(model.config).pop(THRESHOLD, None)
        return {}
    setattr(model.config, THRESHOLD, threshold)
    context.notice(
        f"{stage}: it is best to give no answer where the score of none is more than {threshold:.2f} above "
        f"that of the best span, by {len(tuning.labels):,} tuning questions"
    )
    return {"null_score_diff_threshold": threshold}
