"""Convert a trained encoder to ALBERT's form: small embeddings, and a block that several layers share.

The embeddings lose what does not fit into E dimensions (`factorising`). A shared block starts as the card says: from the mean of the
teacher's blocks, from one of its layers, or from least squares on its activations (`fitting`). Nothing is random.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..families import FAMILIES
from ..student_forms import Albert
from . import fitting
from .activations import Sample
from .factorising import factorise
from .fitting import Repeat, repeats, sharing
from .parts import family_of, head_parts, layer_parts

CONVERSION = 1  # part of the store's keys: bump it when the same card gets different weights


def convert(student: Any, teacher: Any, spec: Albert, sample: Sample | None) -> None:
    """Fill `student`, an ALBERT as wide as its `teacher`, which has separate layers; both are encoders, or both classifiers.

    `sample`: padded batches of text; rows of the tables are weighted by all of them, activations are taken from a few thousand tokens.
    Without a sample, only the head is filled; use that if the encoder comes from another checkpoint.
    """
    student_encoder, teacher_encoder = student.base_model, teacher.base_model
    _copy_head(student, teacher)
    if sample is None:
        return
    factorise(student_encoder, teacher_encoder, sample)
    passes = repeats(student_encoder, teacher_layers=teacher_encoder.config.num_hidden_layers)
    if spec.block == "fit":
        fitting.fit_blocks(passes, teacher_encoder, sample)
        return
    for number, group in enumerate(sharing(passes)):
        covered = sorted({layer for each in group for layer in range(each.first, each.last + 1)})
        sources = covered if spec.block == "mean" else [spec.block[number]]
        _set_block(group[0], [layer_parts(teacher_encoder, source) for source in sources])


def _set_block(target: Repeat, sources: Sequence[Any]) -> None:
    """Set a block to the mean of the `sources`, which are `layer_parts`."""
    for part, path in FAMILIES["albert"].layers.parts.items():
        average(target.layer.get_submodule(path), [getattr(source, part) for source in sources])


def average(target: Any, sources: Sequence[Any]) -> None:
    """Set every parameter of `target` to the mean of the `sources`' parameters of the same name."""
    import torch

    parameters = [dict(source.named_parameters()) for source in sources]
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(torch.stack([each[name].double() for each in parameters]).mean(0))


def _copy_head(student: Any, teacher: Any) -> None:
    """Copy the head, or the pooler if both models are encoders."""
    if student is not student.base_model and teacher is not teacher.base_model:
        pairs = list(zip(head_parts(student), head_parts(teacher), strict=True))
    else:
        encoder, path = teacher.base_model, family_of(teacher).heads.pooler
        pairs = (
            [(student.base_model.pooler, encoder.get_submodule(path))] if path and encoder.pooler is not None else []
        )
    for target, source in pairs:
        average(target, [source])
