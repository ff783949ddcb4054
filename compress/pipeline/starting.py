"""What stages start with: the student as the stage before left it, or a new one from its teacher; a teacher that grows, or
begins with what is counted in its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import processes
from ..corpus import TextBatches, count_pairs, word_vectors
from ..models.blocks import tie
from ..models.checkpoints import load_classifier, load_encoder, pad_id, save_checkpoint
from ..models.counted_start import begin_encoder, begin_head
from ..models.dimensions import Dimensions, dimensions, read_config, word_and_position_widths
from ..models.features import compute_features
from ..models.growing import grow
from ..models.layer_maps import layer_pairs
from ..models.masked_lm import has_masked_lm_head, load_masked_lm, masked_lm_around
from ..models.random_models import random_encoder
from ..models.students import (
    STUDENTS,
    build_encoder,
    build_student,
    evaluating,
    load_body,
    sample_tokens,
    student_dimensions,
    table_errors,
    thinned,
    untied_card,
)
from ..spec.cards import StudentCard
from ..spec.stages import Distill
from ..store import Artifact
from .context import Context
from .draft import PRETRAINED, Node
from .plan import Plan
from .teacher_planning import counts_words
from .teachers import TeacherSource
from .teaching import task_sample
from .trainlog import saved_step

Inputs = dict[str, Artifact]


def untuned(plan: Plan, inputs: Inputs) -> Path:
    """The checkpoint of the teacher before its fine-tuning: as plain text made it, or as it came."""
    folder = inputs[PRETRAINED].path if PRETRAINED in inputs else plan.teacher.folder
    if folder is None:
        raise RuntimeError(
            "a stage that reads the teacher before its fine-tuning is only planned where that has learnt"
        )
    return folder


def grow_teacher(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The teacher as it has grown, before any training -> checkpoint, with a masked-LM head where the small one has one."""
    source = plan.teacher
    torch.manual_seed(node.seed)
    encoder: Any = random_encoder(source.config)
    headed = source.small is not None and has_masked_lm_head(source.small)
    model: Any = masked_lm_around(encoder) if headed else encoder
    grow_into(model, source, seed=node.seed)
    save_checkpoint(model.eval(), source.tokenizer, out)
    return {"masked_lm_head": headed}


def grow_into(model: Any, teacher: TeacherSource, *, seed: int) -> None:
    """Where the teacher's card says what it grows from, put the grown weights into `model`: the encoder's, and those of a
    masked-LM head where both have one."""
    if teacher.small is None:
        return
    sizes = (dimensions(read_config(teacher.small), classes=2), teacher.dimensions(2))
    grown = grow(load_encoder(teacher.small).state_dict(), *sizes, seed=seed)
    model.base_model.load_state_dict(grown, strict=False)  # a classifier of a masked LM's encoder has no pooler
    if hasattr(model, "cls") and has_masked_lm_head(teacher.small):
        head = {name: value for name, value in load_masked_lm(teacher.small).state_dict().items() if "cls." in name}
        model.load_state_dict(grow(head, *sizes, seed=seed), strict=False)


def start_student(
    plan: Plan, spec: Distill, inputs: Inputs, context: Context, teacher: Any, tokenizer: Any
) -> tuple[nn.Module, dict[str, Any]]:
    """The student that the stage trains, and what there is to say of a start that was computed."""
    card = _card(plan)
    if spec.untied:
        card = untied_card(card)
    sizes = student_dimensions(card, plan.sizes["teacher"])
    if "student" in inputs:
        last = load_classifier(inputs["student"].path, labels=context.labels, trained=True)
        return _tied(card, last, sizes), {}
    sample, tokens = None, sample_tokens(card)
    if tokens and "encoder" not in inputs:
        sample = task_sample(context.task, tokenizer, pad_id(teacher.config.to_dict()), tokens=tokens)
    student = build_student(card, teacher, sizes, sample)
    if "encoder" in inputs:
        encoder = inputs["encoder"]
        load_body(student, encoder.path, pooler=encoder.info.get("pooler_trained", False))
    return student, _told(card, student, teacher, sample)


def start_encoder(plan: Plan, teacher: Any, data: Any) -> tuple[nn.Module, dict[str, Any]]:
    """As `start_student`, for a stage on plain text, whose `data` gives the sample."""
    card = _card(plan)
    tokens = sample_tokens(card)
    sample = data.sample(-(-tokens // data.length)) if tokens else None
    student = build_encoder(card, teacher, plan.sizes["student"], sample)
    return student, _told(card, student, teacher, sample)


def begin_with_counts(
    plan: Plan, node: Node, model: Any, text: TextBatches, context: Context, work: Path
) -> dict[str, Any]:
    """Begin the random weights of a pre-training with what is counted in its `text`, where the stage says so; what is told of
    it. Of several processes the first does it: with its weights all begin. A training that goes on has weights of its own.
    """
    if not counts_words(node.spec, plan.teacher):
        return {}
    found = _counted(node, model, text, context, work) if processes.is_first() else {}
    processes.broadcast(None)  # however long it takes, the others wait here
    return found


def _counted(node: Node, model: Any, text: TextBatches, context: Context, work: Path) -> dict[str, Any]:
    told = work / "start.json"
    if saved_step(work) is not None:
        return json.loads(told.read_text())
    encoder = getattr(model, "base_model", model)
    pairs, counts = count_pairs(text, lambda done, total: context.listener.progress("sequences counted", done, total))
    width, _ = word_and_position_widths(encoder.config.hidden_size, encoder.config.num_attention_heads)
    begin_encoder(encoder, word_vectors(pairs, width, seed=node.seed))
    if model is not encoder:
        begin_head(model, counts)
    found = {"start": {"words": int((counts > 0).sum()), "pairs": int(pairs.nnz)}}
    told.write_text(json.dumps(found))
    return found


def _card(plan: Plan) -> StudentCard:
    if plan.student is None:
        raise RuntimeError("a stage that trains a student is only planned with one")
    return plan.student


def _tied(card: StudentCard, last: Any, sizes: Dimensions) -> nn.Module:
    """`last` itself, or, after an untied stage, a model of `sizes` with its layers' weights made one."""
    if card.albert is None:
        return last
    config = STUDENTS[card.architecture].config(last.config, sizes)
    if last.config.num_hidden_groups == config.num_hidden_groups:
        return last
    from transformers import AutoModelForSequenceClassification

    student = AutoModelForSequenceClassification.from_config(config)
    tie(last, student)
    return student


def _told(card: StudentCard, student: Any, teacher: Any, sample: Any) -> dict[str, Any]:
    """How far a conversion is from its teacher: what the tables lost, and the cosine of the hidden states, layer by layer."""
    if card.init != "convert" or sample is None:
        return {}
    mine, theirs = student.base_model, teacher.base_model
    return {
        "start": {
            "table_errors": {name: round(error, 4) for name, error in table_errors(mine, theirs).items()},
            "hidden_cosine": [round(value, 4) for value in _cosines(mine, theirs, thinned(sample))],
        }
    }


def _cosines(student: Any, teacher: Any, sample: Any) -> list[float]:
    """Mean cosine over real tokens at the embeddings and after each layer, each beside its teacher layer."""
    counts = {"student_layers": student.config.num_hidden_layers, "teacher_layers": teacher.config.num_hidden_layers}
    pairs = [(0, 0), *layer_pairs("uniform", **counts)]
    sums, tokens = torch.zeros(len(pairs), dtype=torch.float64), 0
    with evaluating(student), evaluating(teacher), torch.no_grad():
        for batch in sample:
            batch = {name: torch.as_tensor(value) for name, value in batch.items()}
            real = batch["attention_mask"].bool()
            mine = compute_features(student, batch, [f"hidden[{layer}]" for layer, _ in pairs])
            theirs = compute_features(teacher, batch, [f"hidden[{layer}]" for _, layer in pairs])
            for place, (own, other) in enumerate(pairs):
                states = mine[f"hidden[{own}]"][real], theirs[f"hidden[{other}]"][real]
                sums[place] += torch.nn.functional.cosine_similarity(*states, dim=-1).double().sum()
            tokens += int(real.sum())
    return (sums / tokens).tolist()
