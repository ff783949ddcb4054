"""What the training of a student starts with: the student of the previous stage, or a new one made from its teacher."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ...corpus import TextBatches
from ...errors import CompressError
from ...losses.features import hidden
from ...models.cards import StudentCard
from ...models.checkpoints.folders import load_classifier, load_encoder, pad_id
from ...models.features.named import compute_features
from ...models.layer_maps import layer_pairs
from ...models.sentence_encoders.layer_mix import start_mix
from ...models.sentence_encoders.vector_layers import MIX
from ...models.students import (
    build_encoder,
    build_static,
    build_student,
    evaluating,
    load_body,
    sample_tokens,
    table_errors,
    thin_sample,
)
from ...models.token_vectors import VECTORS
from ...spec.kinds import KINDS
from ..plan import Context, Inputs, Job, Plan
from ..plan.students import card_of
from ..plan.teachers import TeacherSource
from .info import Start
from .labels import label_order, reorder_head
from .teacher_targets import task_sample


def initial_student(job: Job[Any], teacher: Any, tokenizer: Any) -> tuple[nn.Module, Start | None]:
    """Return the student that the stage trains, and info on a computed initialization."""
    plan, inputs, context = job.plan, job.inputs, job.context
    if "student" in inputs:
        return load_classifier(inputs["student"].path, kind=context.kind, labels=context.labels, trained=True), None
    if plan.pretrained is not None:
        student = _pretrained_classifier(plan.pretrained, context)
        _load_encoder(student, inputs)
        return student, None
    if not plan.sizes["student"].layers:
        artifact = inputs.get("token_vectors")
        vectors = None if artifact is None else np.load(artifact.path / VECTORS, allow_pickle=False)
        return build_static(teacher, plan.sizes["student"], tokenizer, vectors), None
    card, sample = card_of(plan, inputs), None
    tokens = sample_tokens(card)
    if tokens and "encoder" not in inputs:
        sample = task_sample(context.task, tokenizer, pad_id(teacher.config.to_dict()), tokens=tokens)
    student = build_student(card, teacher, plan.sizes["student"], sample)
    _load_encoder(student, inputs)
    start = _start_info(card, student, teacher, sample)
    if card.vector_layers == MIX:
        start_mix(student)
    return student, start


def _load_encoder(student: nn.Module, inputs: Inputs) -> None:
    """Load the encoder that a stage on plain text trained, if there was one."""
    if "encoder" in inputs:
        encoder = inputs["encoder"]
        load_body(student, encoder.path, pooler=encoder.info.get("pooler_trained", False))


def _pretrained_classifier(source: TeacherSource, context: Context) -> nn.Module:
    """Load the checkpoint with its own head, in the order of the task's labels, if it has one of the task's size; else with a new head."""
    folder = source.folder or Path()
    model = load_classifier(folder, kind=context.kind, labels=context.labels, trained=False)
    source.check_unchanged()
    if KINDS[context.kind].learnt and source.is_fine_tuned(context.kind):
        with suppress(CompressError):  # other labels: no order is right
            order = label_order(source.labels, context.labels, kind=context.kind, where=str(folder))
            if order is not None:
                reorder_head(model, list(order))
    return model


def initial_encoder(plan: Plan, inputs: Inputs, teacher: Any, data: TextBatches) -> tuple[nn.Module, Start | None]:
    """As `initial_student`, for a stage on plain text, whose `data` gives the sample."""
    card = card_of(plan, inputs)
    if plan.pretrained is not None:
        encoder = load_encoder(plan.pretrained.folder or Path())
        plan.pretrained.check_unchanged()
        return encoder, None
    tokens = sample_tokens(card)
    sample = data.sample(-(-tokens // data.length)) if tokens else None
    student = build_encoder(card, teacher, plan.sizes["student"], sample)
    return student, _start_info(card, student, teacher, sample)


def _start_info(card: StudentCard, student: Any, teacher: Any, sample: Any) -> Start | None:
    """Return how far a conversion is from its teacher: the errors of the tables, and the cosine of the hidden states, layer by layer."""
    if card.init != "convert" or sample is None:
        return None
    student_encoder, teacher_encoder = student.base_model, teacher.base_model
    return {
        "table_errors": {
            name: round(error, 4) for name, error in table_errors(student_encoder, teacher_encoder).items()
        },
        "hidden_cosine": [round(value, 4) for value in _cosines(student_encoder, teacher_encoder, thin_sample(sample))],
    }


def _cosines(student: Any, teacher: Any, sample: Any) -> list[float]:
    """Mean cosine over real tokens at the embeddings and after each layer, each compared with its teacher layer."""
    counts = {"student_layers": student.config.num_hidden_layers, "teacher_layers": teacher.config.num_hidden_layers}
    pairs = [(0, 0), *layer_pairs("uniform", **counts)]
    sums, tokens = torch.zeros(len(pairs), dtype=torch.float64), 0
    with evaluating(student), evaluating(teacher), torch.no_grad():
        for batch in sample:
            batch = {name: torch.as_tensor(value) for name, value in batch.items()}
            real = batch["attention_mask"].bool()
            student_states = compute_features(student, batch, [hidden(layer) for layer, _ in pairs])
            teacher_states = compute_features(teacher, batch, [hidden(layer) for _, layer in pairs])
            for index, (student_layer, teacher_layer) in enumerate(pairs):
                states = student_states[hidden(student_layer)][real], teacher_states[hidden(teacher_layer)][real]
                sums[index] += torch.nn.functional.cosine_similarity(*states, dim=-1).double().sum()
            tokens += int(real.sum())
    return (sums / tokens).tolist()
