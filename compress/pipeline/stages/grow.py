"""grow: the teacher as grown from a smaller one, for stages that read it before any training."""

from __future__ import annotations

from ...fields import Spec
from ...models.checkpoints.folders import save_checkpoint
from ...models.masked_lm import has_masked_lm_head, masked_lm_around
from ...models.random_models import random_encoder
from ..plan import TRAINING, Draft, Job, Kind

GROWN = "grown"  # the node


class Grow(Spec):
    """No settings: they are in the teacher's card."""


def add_grown(draft: Draft) -> None:
    outside, described = {"teacher": draft.teacher.identity}, {"seed": draft.base_seed}
    draft.add(GROW, GROWN, GROWN, Grow(), described, outside=outside, seed=draft.base_seed)


def run(job: Job[Grow]) -> dict[str, bool]:
    """Write the grown checkpoint, with a masked-LM head if the small model has one."""
    import torch

    from ..training.initial_teacher import grow_into

    source = job.plan.teacher
    torch.manual_seed(job.node.seed)
    encoder = random_encoder(source.config)
    headed = source.grown_from is not None and has_masked_lm_head(source.grown_from)
    model = masked_lm_around(encoder) if headed else encoder
    grow_into(model, source, seed=job.node.seed)
    save_checkpoint(model.eval(), source.tokenizer, job.out)
    return {"masked_lm_head": headed}


GROW = Kind("grow", 1, Grow, run=run, libraries=TRAINING, checkpoint=True, trained_model="teacher")
