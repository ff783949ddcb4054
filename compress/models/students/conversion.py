"""Take a trained BERT to ALBERT's form: small embeddings, and a block that many layers share.

The embeddings lose what E cannot hold (`factorising`). A shared block starts as the card says: the mean of
the teacher's, one of its layers, or least squares on its activations (`fitting`). Nothing is random.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..cards import Albert
from ..families import FAMILIES
from . import fitting
from .activations import Sample
from .factorising import factorise
from .fitting import Repeat, repeats, sharing

CONVERSION = 1  # keys of the store hold it: bump it when the same card is given other weights than before


def convert(student: Any, teacher: Any, spec: Albert, sample: Sample | None) -> None:
    """Fill `student`, an ALBERT as wide as its `teacher`, a BERT; both are encoders, or both classifiers.

    `sample`: padded batches of text; all of them are counted, and a few thousand of their tokens looked at.
    Without one, only the head is filled: for a student whose encoder another checkpoint brings.
    """
    mine, theirs = student.base_model, teacher.base_model
    _copy_head(student, teacher)
    if sample is None:
        return
    factorise(mine, theirs, sample)
    passes = repeats(mine, teacher_layers=theirs.config.num_hidden_layers)
    layers = theirs.encoder.layer
    if spec.block == "fit":
        fitting.fit_blocks(passes, theirs, sample)
        return
    for number, group in enumerate(sharing(passes)):
        covered = sorted({layer for each in group for layer in range(each.first, each.last + 1)})
        _set_block(group[0], [layers[at] for at in (covered if spec.block == "mean" else [spec.block[number]])])


def _set_block(target: Repeat, sources: Sequence[Any]) -> None:
    """A block as the mean of the `sources`, which are `BertLayer`s."""
    mine, theirs = FAMILIES["albert"].layer, FAMILIES["bert"].layer
    for part, path in mine.items():
        average(target.layer.get_submodule(path), [source.get_submodule(theirs[part]) for source in sources])


def average(target: Any, sources: Sequence[Any]) -> None:
    """Every parameter of `target` as the mean of the `sources`' of the same name."""
    import torch

    found = [dict(source.named_parameters()) for source in sources]
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(torch.stack([each[name].double() for each in found]).mean(0))


def _copy_head(student: Any, teacher: Any) -> None:
    mine, theirs = student.base_model.pooler, teacher.base_model.pooler
    if mine is not None and theirs is not None:
        average(mine, [theirs.dense])
    if hasattr(student, "classifier") and hasattr(teacher, "classifier"):
        average(student.classifier, [teacher.classifier])
