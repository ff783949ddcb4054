"""No loss depends on padding: real models of every family, by named features, on the same texts with more padding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from default_suite import covering
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from compress.losses import LOSSES
from compress.models.features.named import compute_features
from compress.objective import Objective

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")

LENGTHS = (9, 6, 2)
SPECS = [loss.spec() for loss in LOSSES.values() if not loss.of_text]  # losses of text need other labels, and heads
SPECS.sort(key=lambda loss: loss.name != "relation_kl")  # first, for every family: it reads most inside models


def name_of(value: Any) -> str:
    return getattr(value, "name", value)


def batch_of(rows: list[int], length: int) -> dict[str, Tensor]:
    """Return these texts padded to `length`; other lengths give the same texts. Padding tokens differ from each other."""
    ids = torch.randint(5, 100, (len(LENGTHS), 16), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(16) < torch.tensor(LENGTHS)[:, None]
    types = (torch.arange(16) > 3).long().expand(len(LENGTHS), -1)
    whole = {"input_ids": ids, "attention_mask": mask.long(), "token_type_ids": types}
    own = {"labels": torch.tensor([0, 2, 1])[rows], "groups": torch.zeros(len(rows), dtype=torch.long)}  # of one query
    return {name: tensor[rows, :length] for name, tensor in whole.items()} | own


OF_PAIRS = ("margin_mse", "similarity_mse")  # a mean over pairs of texts in one forward pass


@pytest.fixture
def pair(tiny_checkpoint: Callable[[str], Path]) -> Callable[[str], tuple[Any, Any]]:
    """Return a function: family -> a teacher, and a student that is the teacher with noise added."""

    def make(family: str) -> tuple[Any, Any]:
        models: list[Any] = [AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint(family)) for _ in "ab"]
        torch.manual_seed(2)
        with torch.no_grad():
            for parameter in models[1].parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
        return models[0].eval(), models[1].eval()

    return make


def graded(objective: Objective, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the batch with labels as the losses need them: relevances for ranking, else classes."""
    return batch | ({"labels": batch["labels"].float()} if "margin_mse" in objective.means_over else {})


def value(objective: Objective, teacher: Any, student: Any, batch: dict[str, Tensor]) -> Tensor:
    """Compute features and the objective's sum of losses, as a training step does."""
    batch = graded(objective, batch)
    targets = compute_features(teacher, batch, objective.teacher_features)
    return sum(
        objective(compute_features(student, batch, objective.student_features), targets, batch).values(),
        torch.zeros(()),
    )


def gradient(model: nn.Module, loss: Tensor) -> Tensor:
    model.zero_grad()
    loss.backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


@pytest.mark.parametrize(("loss", "family"), covering(SPECS, FAMILIES), ids=name_of)
def test_padding_changes_neither_a_loss_nor_its_gradient(pair: Any, loss: Any, family: str):
    teacher, student = pair(family)
    torch.manual_seed(3)
    objective = Objective((loss,), layers=((1, 2), (2, 1)), widths=(32, 32))
    plain, padded = (value(objective, teacher, student, batch_of([0, 1, 2], length)) for length in (9, 16))
    assert plain.item() > 1e-4
    assert padded.item() == pytest.approx(
        plain.item(), rel=2e-5, abs=1e-6
    )  # fp32; sums of other lengths round differently
    one, other = (gradient(student, loss_) for loss_ in (plain, padded))
    torch.testing.assert_close(other, one, rtol=0, atol=2e-5 * one.abs().max().item())


@pytest.mark.parametrize(
    ("loss", "family"), covering((loss for loss in SPECS if loss.name not in OF_PAIRS), FAMILIES), ids=name_of
)
def test_a_batch_is_the_mean_of_its_texts_alone_without_any_padding(pair: Any, loss: Any, family: str):
    """Weighted by tokens for losses per token, equally for others, so that micro-batches add up to the batch."""
    teacher, student = pair(family)
    objective = Objective((loss,), layers=((1, 2), (2, 1)), widths=(32, 32))
    with torch.no_grad():
        whole = value(objective, teacher, student, batch_of([0, 1, 2], 16)).item()
        alone = [value(objective, teacher, student, batch_of([row], LENGTHS[row])).item() for row in range(3)]
    shares = LENGTHS if LOSSES[loss.name].form.mean_over == "tokens" else (1, 1, 1)
    expected = sum(share * one for share, one in zip(shares, alone, strict=True)) / sum(shares)
    assert whole == pytest.approx(expected, rel=2e-5, abs=1e-6)  # fp32


@pytest.mark.parametrize("family", FAMILIES)
def test_a_student_that_is_its_teacher_has_nothing_to_learn(pair: Any, family: str):
    teacher, _ = pair(family)
    losses = tuple(loss for loss in SPECS if loss.name not in ("hard_label", "soft_cross_entropy"))
    objective = Objective(losses, layers=((1, 1), (2, 2)), widths=(32, 32))
    batch = graded(objective, batch_of([0, 1, 2], 16))
    with torch.no_grad():
        features = [
            compute_features(teacher, batch, names)
            for names in (objective.student_features, objective.teacher_features)
        ]
        terms = objective(*features, batch)
    assert len(terms) == len(losses)
    assert all(abs(term.item()) < 1e-6 for term in terms.values())  # fp32


def test_projections_stay_out_of_the_student_and_get_a_gradient_from_every_layer(pair: Any):
    """Widths 32 and 48: the teacher's features are widened, since no tiny teacher is wider."""
    teacher, student = pair("bert")
    losses = tuple(loss for loss in SPECS if loss.name in ("embedding_mse", "hidden_mse"))
    objective = Objective(losses, layers=((1, 1), (2, 2)), widths=(32, 48))
    before = set(student.state_dict())
    batch = batch_of([0, 1, 2], 9)
    targets = {
        name: torch.cat([tensor, tensor[..., :16]], dim=-1)
        for name, tensor in compute_features(teacher, batch, objective.teacher_features).items()
    }
    terms = objective(compute_features(student, batch, objective.student_features), targets, batch)
    torch.stack(list(terms.values())).sum().backward()
    assert set(student.state_dict()) == before
    assert set(objective.state_dict()) == {"projections.embedding_mse.weight", "projections.hidden_mse.weight"}
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in objective.parameters())
    assert all(parameter.grad is not None for name, parameter in student.named_parameters() if ".layer." in name)
