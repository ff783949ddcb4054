"""Combine losses into weighted, named terms, with the modules that they train beside the student."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .errors import CompressError
from .losses import LOSSES
from .losses.features import LAST_HIDDEN, TOKEN_SCORES
from .losses.loss import LossSpec, MeanOver, Pairs
from .models.features.named import Batch, Features
from .models.heads import HEADS
from .models.masked_head import MaskedLmHeads
from .spec.kinds import KindName


class Objective(nn.Module):
    """The weighted sum of a recipe's losses. Owns the modules that losses train beside the student: projections and heads.

    `layers`: matched (student layer, teacher layer), counted from 1. `widths`: the hidden sizes of student and teacher.
    `masked_lm`: the masked-LM heads, for losses on masked tokens. `kind`: the task's, which determines losses on logits.
    `student_features` and `teacher_features` name what `forward` reads, `means_over` what each loss averages over, and
    `heads_run` whether the student's masked-LM head scores masked tokens, and whether the teacher's does.
    """

    def __init__(
        self,
        losses: Sequence[LossSpec],
        *,
        layers: Pairs = (),
        widths: tuple[int, int] | None = None,
        masked_lm: MaskedLmHeads | None = None,
        kind: KindName = "classification",
    ) -> None:
        super().__init__()
        self._losses = [loss for loss in losses if loss.weight > 0]
        names = [loss.name for loss in self._losses]
        if not names or len(set(names)) != len(names):
            raise CompressError(
                f"losses: expected different ones, at least one of them with a weight above 0; found {names}"
            )
        self._forms = {name: HEADS[kind].form_of(LOSSES[name]) for name in names}
        self._compared = {loss.name: LOSSES[loss.name].compares(loss, layers) for loss in self._losses}
        if lacking_layers := [name for name, compared in self._compared.items() if not compared]:
            raise CompressError(f"losses: {', '.join(lacking_layers)} needs matched layers; found none")
        every = [pair for compared in self._compared.values() for pair in compared]
        from_student = frozenset(feature for feature, _ in every)
        from_teacher = frozenset(feature for _, feature in every if feature is not None)
        self._compares = from_student, from_teacher
        self.student_features, self.teacher_features = map(_read, self._compares)
        self.heads_run = tuple(TOKEN_SCORES in compared for compared in self._compares)
        if masked_lm is None and any(self.heads_run):
            raise ValueError(f"losses {names}: what reads masked tokens needs masked-LM heads")
        if masked_lm is not None and self.heads_run[0]:
            self.student_features |= masked_lm.student_features
        self.means_over: dict[str, MeanOver] = {name: form.mean_over for name, form in self._forms.items()}
        self.projections = nn.ModuleDict(
            {
                name: _projection(*widths)
                for name in names
                if LOSSES[name].projected and widths and widths[0] != widths[1]
            }
        )
        self.heads = nn.ModuleDict(
            {name: _head(widths, classes) for name in names if (classes := LOSSES[name].head_classes)}
        )
        self.masked_lm = masked_lm

    def forward(self, student: Features, teacher: Features, batch: Batch) -> dict[str, Tensor]:
        """Return name -> weight · loss, each a scalar; their sum is minimised. Computed in fp32, under autocast too, except
        for the masked-LM heads, whose matmuls are treated like a model's."""
        student, teacher = {**student}, {**teacher}
        self._add_scores(student, teacher, batch)
        with torch.autocast(next(iter(student.values())).device.type, enabled=False):
            student_fp32 = {name: value.float() for name, value in student.items()}
            teacher_fp32 = {name: value.float() for name, value in teacher.items()}
            return {
                loss.name: loss.weight * self._term(loss, student_fp32, teacher_fp32, batch) for loss in self._losses
            }

    def _add_scores(self, student: Features, teacher: Features, batch: Batch) -> None:
        """Add the scores of the masked-LM heads, once for all losses that read them."""
        student_runs, teacher_runs = self.heads_run
        if self.masked_lm is not None and student_runs:
            student[TOKEN_SCORES] = self.masked_lm.scores(student, batch)
        if self.masked_lm is not None and teacher_runs:
            teacher[TOKEN_SCORES] = self.masked_lm.teacher_scores(teacher[LAST_HIDDEN], batch)

    def _term(self, loss: LossSpec, student: Features, teacher: Features, batch: Batch) -> Tensor:
        """Return the sum over what the loss compares, such as the matched layers; they share one projection."""
        parts = []
        for student_feature, teacher_feature in self._compared[loss.name]:
            prediction = self._student_feature(loss.name, student_feature, student)
            target = None if teacher_feature is None else teacher[teacher_feature]
            parts.append(self._forms[loss.name].compute(loss, prediction, target, batch))
        return torch.stack(parts).sum()

    def _student_feature(self, loss: str, feature: str, student: Features) -> Tensor:
        """Return the student's feature as the loss takes it: through its projection or head, if it has one."""
        for learnt in (self.projections, self.heads):
            if loss in learnt:
                return learnt[loss](student[feature])
        return student[feature]


def _read(compared: frozenset[str]) -> frozenset[str]:
    """Return the model features from which the compared ones are computed."""
    return frozenset(LAST_HIDDEN if name == TOKEN_SCORES else name for name in compared)


def _projection(student: int, teacher: int) -> nn.Linear:
    """Return a plain matrix, as in the paper; a bias would add nothing, since the LayerNorm before it has one."""
    layer = nn.Linear(student, teacher, bias=False)
    nn.init.normal_(layer.weight, std=0.02)
    return layer


def _head(widths: tuple[int, int] | None, classes: int) -> nn.Linear:
    """Return a head that starts as BERT's and ALBERT's own: small weights, zero bias."""
    if widths is None:
        raise ValueError("a head on a feature of the student needs the student's width")
    layer = nn.Linear(widths[0], classes)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer
