"""Loss specs to weighted, named terms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .errors import CompressError
from .losses import (
    LOSSES,
    attention_mse_loss,
    hard_label_loss,
    hidden_cosine_loss,
    hidden_mse_loss,
    masked_soft_target_loss,
    relation_kl_loss,
    soft_cross_entropy_loss,
    soft_target_loss,
    squared_error_loss,
)
from .models.features import Batch, Features
from .models.layer_maps import Pairs
from .models.masked_head import MaskedLmObjective
from .models.masked_lm import token_loss
from .spec.base import Spec

Compared = tuple[
    tuple[str, str | None], ...
]  # features of the student, each with the teacher's that it is held against


_TOKENS = "tokens"  # what a masked-LM head makes of the last hidden states, beside the features of a model


@dataclass(frozen=True)
class Term:
    """How a loss spec becomes a number: the sum, over the features it compares, of a function of (spec, student, teacher, batch).

    `compares` gives them from the spec and the matched layers. `per_token`: it is a mean over real tokens, not over
    examples; micro-batches are weighted accordingly. `projected`: the student's features are taken to the teacher's
    width first, where widths differ. `classes`: to so many logits first, by a learned layer.
    """

    compute: Callable[[Any, Tensor, Any, Batch], Tensor]
    compares: Callable[[Any, Pairs], Compared]
    per_token: bool = False
    projected: bool = False
    classes: int | None = None


def _soft_target(spec: Any, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    if _regression(batch):
        return squared_error_loss(student, teacher[:, 0])
    return soft_target_loss(student, teacher, temperature=spec.temperature)


def _soft_cross_entropy(spec: Any, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    if _regression(batch):
        return squared_error_loss(student, batch["labels"])
    return soft_cross_entropy_loss(student, teacher, temperature=spec.temperature)


def _hard_label(spec: Any, student: Tensor, teacher: None, batch: Batch) -> Tensor:
    if _regression(batch):
        return squared_error_loss(student, batch["labels"])
    return hard_label_loss(student, batch["labels"])


def _regression(batch: Batch) -> bool:
    return batch["labels"].is_floating_point()


def _masked(loss: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Any, Tensor, Any, Batch], Tensor]:
    return lambda spec, student, teacher, batch: loss(student, teacher, batch["attention_mask"])


def _relation_kl(spec: Any, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    heads = spec.heads or teacher.shape[1]
    seen = batch["attention_mask"], batch.get("documents")
    return relation_kl_loss(student, teacher, *seen, heads=heads) / len(spec.relations)


def _attention_mse(spec: Any, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return attention_mse_loss(student, teacher, batch["attention_mask"], batch.get("documents"))


def _always(student: str, teacher: str | None) -> Callable[[Any, Pairs], Compared]:
    return lambda spec, layers: ((student, teacher),)


def _hidden(spec: Any, layers: Pairs) -> Compared:
    return tuple((f"hidden[{mine}]", f"hidden[{theirs}]") for mine, theirs in layers)


def _scores(spec: Any, layers: Pairs) -> Compared:
    return tuple((f"scores[{mine - 1}]", f"scores[{theirs - 1}]") for mine, theirs in layers)


def _as_it_is(spec: Any, student: Tensor, teacher: None, batch: Batch) -> Tensor:
    """The feature is the loss."""
    return student


def _masked_tokens(spec: Any, scores: Tensor, teacher: None, batch: Batch) -> Tensor:
    return token_loss(scores, batch)


def _masked_soft_target(spec: Any, scores: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return masked_soft_target_loss(scores, teacher, temperature=spec.temperature)


def _of_pairs(spec: Any, logits: Tensor, teacher: None, batch: Batch) -> Tensor:
    """The labels are in the batch under the name of the loss."""
    return LOSSES[spec.name](logits, batch[spec.name])


def _spread(spec: Any, layers: Pairs) -> Compared:
    return ((f"spread[{spec.groups}]", None),)


def _relations(spec: Any, layers: Pairs) -> Compared:
    mine, theirs = (-1 if layer is None else layer - 1 for layer in (spec.student_layer, spec.teacher_layer))
    return tuple((f"{kind}[{mine}]", f"{kind}[{theirs}]") for kind in spec.relations)


_hidden_mse = _masked(hidden_mse_loss)
TERMS: dict[str, Term] = {
    "soft_target": Term(_soft_target, _always("logits", "logits")),
    "hard_label": Term(_hard_label, _always("logits", None)),
    "hidden_cosine": Term(_masked(hidden_cosine_loss), _always("hidden[-1]", "hidden[-1]"), per_token=True),
    "soft_cross_entropy": Term(_soft_cross_entropy, _always("logits", "logits")),
    "embedding_mse": Term(_hidden_mse, _always("embeddings", "embeddings"), per_token=True, projected=True),
    "hidden_mse": Term(_hidden_mse, _hidden, per_token=True, projected=True),
    "attention_mse": Term(_attention_mse, _scores),
    "relation_kl": Term(_relation_kl, _relations, per_token=True),
    "block_spread": Term(_as_it_is, _spread),
    "sentence_order": Term(_of_pairs, _always("pooled", None), classes=2),
    "next_sentence": Term(_of_pairs, _always("pooled", None), classes=2),
    "masked_lm": Term(_masked_tokens, _always(_TOKENS, None), per_token=True),
    "masked_soft_target": Term(_masked_soft_target, _always(_TOKENS, _TOKENS), per_token=True),
}


class Objective(nn.Module):
    """The weighted sum of a recipe's losses. Owns what a loss learns beside the student: projections and heads.

    `layers` are matched (student layer, teacher layer), counted from 1; `widths` the hidden sizes of student and teacher;
    `masked_lm` the masked-LM heads for the losses that read hidden tokens.
    `student_features` and `teacher_features` name what `forward` reads; `per_token` the losses that are means over real tokens;
    `heads_run` whether the student's masked-LM head scores hidden tokens, and whether the teacher's does.
    """

    def __init__(
        self,
        losses: Sequence[Spec],
        *,
        layers: Pairs = (),
        widths: tuple[int, int] | None = None,
        masked_lm: MaskedLmObjective | None = None,
    ) -> None:
        super().__init__()
        self._losses: list[Any] = [loss for loss in losses if getattr(loss, "weight", 1.0) > 0]
        names = [loss.name for loss in self._losses]
        if not names or len(set(names)) != len(names):
            raise CompressError(
                f"losses: expected different ones, at least one of them with a weight above 0; found {names}"
            )
        self._compared = {loss.name: TERMS[loss.name].compares(loss, layers) for loss in self._losses}
        if bare := [name for name, compared in self._compared.items() if not compared]:
            raise CompressError(f"losses: {', '.join(bare)} needs matched layers; found none")
        every = [pair for compared in self._compared.values() for pair in compared]
        self._compares = frozenset(mine for mine, _ in every), frozenset(theirs for _, theirs in every if theirs)
        self.student_features, self.teacher_features = map(_read, self._compares)
        if _TOKENS in self._compares[0] and masked_lm is not None:
            self.student_features |= masked_lm.student_features
        self.per_token = frozenset(name for name in names if TERMS[name].per_token)
        self.projections = nn.ModuleDict(
            {
                name: _projection(*widths)
                for name in names
                if TERMS[name].projected and widths and widths[0] != widths[1]
            }
        )
        self.heads = nn.ModuleDict({name: _head(widths, classes) for name in names if (classes := TERMS[name].classes)})
        self.masked_lm = masked_lm
        self.heads_run = tuple(_TOKENS in compared for compared in self._compares)
        if masked_lm is None and any(self.heads_run):
            raise ValueError(f"losses {names}: masked_lm needs a head of the student's, masked_soft_target one of both")

    def forward(self, student: Features, teacher: Features, batch: Batch) -> dict[str, Tensor]:
        """name -> weight · loss, each a scalar; their sum is what is minimised. Computed in fp32, under autocast too, but for the
        masked-LM heads, whose products are those of a model."""
        student, teacher = {**student}, {**teacher}
        self._add_scores(student, teacher, batch)
        with torch.autocast(next(iter(student.values())).device.type, enabled=False):
            wide = {name: value.float() for name, value in student.items()}
            goal = {name: value.float() for name, value in teacher.items()}
            return {loss.name: loss.weight * self._term(loss, wide, goal, batch) for loss in self._losses}

    def _add_scores(self, student: Features, teacher: Features, batch: Batch) -> None:
        """What the masked-LM heads say, once for all losses that read it."""
        mine, theirs = self.heads_run
        if self.masked_lm is not None and mine:
            student[_TOKENS] = self.masked_lm.scores(student, batch)
        if self.masked_lm is not None and theirs:
            teacher[_TOKENS] = self.masked_lm.teacher_scores(teacher["hidden[-1]"], batch)

    def _term(self, loss: Any, student: Features, teacher: Features, batch: Batch) -> Tensor:
        """The sum over what the loss compares, such as the matched layers; one projection serves them all."""
        parts = []
        for mine, theirs in self._compared[loss.name]:
            seen, goal = self._seen(loss.name, mine, student), None if theirs is None else teacher[theirs]
            parts.append(TERMS[loss.name].compute(loss, seen, goal, batch))
        return torch.stack(parts).sum()

    def _seen(self, loss: str, feature: str, student: Features) -> Tensor:
        """The student's feature as the loss takes it: through what is learnt beside the student, where there is such."""
        for learnt in (self.projections, self.heads):
            if loss in learnt:
                return learnt[loss](student[feature])
        return student[feature]


def _read(compared: frozenset[str]) -> frozenset[str]:
    """The features of a model from which come those that are compared."""
    return frozenset("hidden[-1]" if name == _TOKENS else name for name in compared)


def _projection(student: int, teacher: int) -> nn.Linear:
    """A plain matrix, as in the paper; a bias would add nothing, since the LayerNorm before it has one."""
    layer = nn.Linear(student, teacher, bias=False)
    nn.init.normal_(layer.weight, std=0.02)
    return layer


def _head(widths: tuple[int, int] | None, classes: int) -> nn.Linear:
    """As BERT's and ALBERT's own heads begin: small weights, no bias yet."""
    if widths is None:
        raise ValueError("a head on a feature of the student needs the student's width")
    layer = nn.Linear(widths[0], classes)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer
