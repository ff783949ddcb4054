"""Note fields that choose among checkpoints by their scores, in stages whose models are not scored while they train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...losses import LOSSES
from ...losses.loss import LossSpec


def unscored_notes(stage: str, written: Mapping[str, Any], losses: Sequence[LossSpec] = ()) -> list[str]:
    """Return a note for each of the fields `written` in the recipe or by `--set` that has no effect, since none of `losses` trains the
    model's answers. `keep: last` says what is done anyway."""
    if any(loss.weight > 0 and LOSSES[loss.name].reads == "logits" for loss in losses):
        return []
    unread = [
        name for name, value in written.items() if name == "evaluate_every" or (name == "keep" and value != "last")
    ]
    return [
        f"{stage}.{name} has no effect: no loss of the stage is on the task's answers, so nothing is scored while it trains, and its last "
        "step is kept"
        for name in unread
    ]
