"""The checkpoints that all candidates start from: transformers models with a head of two outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from heads import Head, class_name, side_by_side
from inputs import checked

from compress.models.cards import load_student
from compress.models.checkpoints.folders import load_classifier, save_checkpoint
from compress.models.dimensions import dimensions
from compress.models.random_models import random_classifier
from compress.models.students import build_student, student_dimensions
from compress.pipeline.plan.teachers import resolve_teacher

_TRAINED, _BASE = "minilm-l6", "bert-base"


def make_checkpoint(name: str, head: Head, out: Path) -> None:
    """Write the checkpoint `name` into `out`: minilm-l6 with its weights, or a student or bert-base with random ones."""
    source = resolve_teacher(_TRAINED)
    if source.folder is None:
        raise SystemExit(f"expected the teacher {_TRAINED} with a checkpoint")
    torch.manual_seed(0)
    model = (
        load_classifier(source.folder, kind=head.kind, labels=head.labels, trained=False)
        if name == _TRAINED
        else _random(name, head)
    )
    save_checkpoint(model.eval(), source.tokenizer, out)


def reference_logits(checkpoint: Path) -> np.ndarray:
    """Return the logits of the checked batch by torch in fp32, float32 [sequence, …]."""
    model: Any = getattr(transformers, class_name(checkpoint))
    model = model.from_pretrained(checkpoint, attn_implementation="eager").eval()
    batch = checked()
    with torch.inference_mode():
        answer = model(input_ids=torch.from_numpy(batch.ids), attention_mask=torch.from_numpy(batch.mask))
    return side_by_side([one.numpy() for one in answer.to_tuple()])


def _random(name: str, head: Head) -> Any:
    base: Any = random_classifier(
        {"model_type": "bert"}, kind=head.kind, labels=head.labels
    )  # transformers' defaults are BERT base's
    if name == _BASE:
        return base
    card = load_student(name).model_copy(update={"init": "random"})
    return build_student(
        card, base, student_dimensions(card, dimensions(base.config.to_dict(), classes=len(head.labels)))
    )
