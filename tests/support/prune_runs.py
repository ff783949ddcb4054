"""Recipes that prune, their inputs, their plans and the checkpoints that they leave."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer
from worlds import encoder_world

from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.run import build_stage
from compress.store import Artifact

TEACHER_ALONE = """
name: alone
title: The teacher itself
stages:
  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}
  - prune: {examples: 24}
  - export:
  - quantize:
"""
STUDENT = """
name: small
title: A student
student: one.yaml
stages:
  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}
  - distill: {max_steps: 8, batch_size: 8, losses: [{name: soft_target}]}
  - prune: {flops: 0.6, examples: 24}
  - quantize_aware: {max_steps: 2, batch_size: 8}
  - export:
  - quantize: {method: qat}
"""
RECOVERED = """
name: recovered
title: Pruned and recovered
stages:
  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}
  - prune: {examples: 24}
  - distill: {max_steps: 8, batch_size: 8, losses: [{name: soft_target}, {name: hidden_mse}]}
  - export:
  - quantize:
"""
SMALL_RECOVERED = """
name: small-recovered
title: A student, pruned and recovered
student: one.yaml
stages:
  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}
  - distill: {max_steps: 8, batch_size: 8, losses: [{name: soft_target}]}
  - prune: {flops: 0.6, examples: 24}
  - distill: {name: recover, max_steps: 8}
  - export:
  - quantize:
"""
GRADUAL = """
name: gradual
title: Pruned and recovered in turns
stages:
  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}
  - prune: {flops: 0.7, examples: 24}
  - distill: {max_steps: 4, batch_size: 8, losses: [{name: soft_target}]}
  - prune: {name: prune-more, flops: 0.6, examples: 24}
  - distill: {name: again, max_steps: 4, batch_size: 8, losses: [{name: soft_target}]}
  - export:
  - quantize:
"""
FILES = {
    "alone": TEACHER_ALONE,
    "plain": TEACHER_ALONE.replace("alone", "plain").replace("  - quantize:\n", ""),
    "small": STUDENT,
    "recovered": RECOVERED,
    "small-recovered": SMALL_RECOVERED,
    "gradual": GRADUAL,
    "one": "{name: one, title: S, layers: 1}",
    "shared": "{name: shared, title: S, architecture: albert, layers: 2, init: convert, albert: {embedding: 16, share: all}}",
}


def prune_world(folder: Path, checkpoint: Path, tokenizer: Tokenizer) -> Path:
    """Write `FILES` into `folder`, beside a task and a teacher."""
    encoder_world(folder, checkpoint, tokenizer, text="a film\n")
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def request(world: Path, recipe: str, *overrides: str, student: str | None = None, task: str = "task") -> Request:
    card = None if student is None else str(world / f"{student}.yaml")
    words = (str(world / f"{recipe}.yaml"),), (str(world / f"{task}.yaml"),)
    return Request(
        *words, teacher=str(world / "teacher"), student=card, root=world / "runs", overrides=overrides, threads=1, bench=None
    )  # fmt: skip


def planned(world: Path, recipe: str, *overrides: str, **more: str) -> Plan:
    return plan_all(request(world, recipe, *overrides, **more))[0]


def build_pruned(world: Path, recipe: str, *overrides: str, student: str | None = None) -> Artifact:
    words = request(world, recipe, *overrides, student=student)
    return build_stage(words, "teacher-pruned" if student is None else "student-pruned")
