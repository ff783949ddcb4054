"""The projections that losses learn for a student of another width than its teacher, saved beside a checkpoint for the next stage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...losses import LOSSES
from ...processes import ranks
from ...spec.stages import Losses
from ..plan import Draft, Inputs

if TYPE_CHECKING:
    from ...objective import Objective

PROJECTIONS = "projections.safetensors"  # name of the loss -> [teacher's width, student's width]


def described_projections(draft: Draft, spec: Losses) -> dict[str, Any]:
    """What keys contain of a stage that learns projections; empty if the widths are the same or no loss has one."""
    learns = any(loss.weight > 0 and LOSSES[loss.name].projected for loss in spec.losses)
    differs = draft.sizes["student"].hidden != draft.sizes["teacher"].hidden
    return {"projections": "kept"} if learns and differs else {}


def save_projections(objective: Objective, out: Path) -> None:
    """Save the projections of a trained objective in the folder of its checkpoint; no file if it has none."""
    from safetensors.torch import save

    weights = {name: layer.weight.detach().float().cpu().contiguous() for name, layer in _layers(objective).items()}
    if weights and ranks.is_first():
        (out / PROJECTIONS).write_bytes(save(weights))


def load_projections(objective: Objective, inputs: Inputs) -> None:
    """Start from the projections that the previous stage saved for the same loss, if their shape is the same."""
    import torch
    from safetensors.torch import load

    before = inputs.get("student", inputs.get("encoder"))
    if before is None or not (before.path / PROJECTIONS).is_file():
        return
    kept = load((before.path / PROJECTIONS).read_bytes())
    with torch.no_grad():
        for name, layer in _layers(objective).items():
            if name in kept and kept[name].shape == layer.weight.shape:
                layer.weight.copy_(kept[name])


def _layers(objective: Objective) -> dict[str, Any]:
    return dict(objective.projections.items())
