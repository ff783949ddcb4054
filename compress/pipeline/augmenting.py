"""The augment stage, and the examples that a stage after it trains on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..augment import (
    GloveProposer,
    MaskedLmProposer,
    NeighbourProposer,
    Proposers,
    WordProposer,
    augment,
    read_augmented,
    write_augmented,
)
from ..models.checkpoints import load_encoder, load_tokenizer
from ..models.masked_lm import load_masked_lm
from ..places import from_home
from ..spec.stages import Augment
from ..store import Artifact
from ..tasks import Encoded, Split, encode
from .context import Context, TaskSource
from .draft import Node
from .plan import Plan
from .starting import untuned
from .teachers import resolve_teacher

Inputs = dict[str, Artifact]


def augment_task(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """Copies of the training split with words replaced -> `augmented.jsonl`."""
    spec: Augment = node.spec
    tokenizer = plan.teacher.tokenizer
    made = augment(
        context.task.data.train,
        tokenizer=tokenizer,
        proposers=Proposers(_masked_lm(plan, spec, inputs, tokenizer), _others(plan, spec, inputs, tokenizer)),
        copies=spec.copies,
        probability=spec.replace_probability,
        candidates=spec.candidates,
        seed=node.seed,
        work=work,
        on_progress=partial(context.listener.progress, "words"),
    )
    write_augmented(made, out)
    return {"examples": len(made.split), "sources": len(context.task.data.train)}


def _masked_lm(plan: Plan, spec: Augment, inputs: Inputs, tokenizer: Any) -> MaskedLmProposer | None:
    from ..training import make_accelerator

    if spec.source != "masked_lm":
        return None
    if "masked_lm" in inputs:
        folder = inputs["masked_lm"].path
    else:
        other = resolve_teacher(spec.masked_lm).folder if spec.masked_lm else None
        folder = other or untuned(plan, inputs)
    model = load_masked_lm(folder).to(make_accelerator("fp32").device)
    return MaskedLmProposer(model, load_tokenizer(folder))


def _others(plan: Plan, spec: Augment, inputs: Inputs, tokenizer: Any) -> WordProposer:
    if spec.glove is not None:
        return GloveProposer(from_home(spec.glove))
    folder = inputs["teacher"].path if "teacher" in inputs else untuned(plan, inputs)
    encoder: Any = load_encoder(folder)
    table = encoder.get_input_embeddings().weight.detach().numpy()
    return NeighbourProposer(table, tokenizer)


def training_examples(task: TaskSource, tokenizer: Any, length: int, augmented: Artifact | None) -> Encoded:
    """The training split in tokens; with its copies after it where an augment stage made some."""
    if augmented is None:
        return task.encoded("train", tokenizer, length)
    train, copies = task.data.train, read_augmented(augmented.path)
    texts = tuple([*own, *new] for own, new in zip(train.texts, copies.texts, strict=True))
    return encode(tokenizer, Split(texts, np.concatenate([train.labels, copies.labels])), length)
