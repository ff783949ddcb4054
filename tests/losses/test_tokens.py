"""Token classification losses, against explicit sums over the tokens that count."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from loss_checks import grad, softmax

from compress.losses import LOSSES
from compress.losses.features import LAST_HIDDEN, LOGITS
from compress.losses.hard_label import HardLabel
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.loss import LossSpec
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.losses.soft_target import SoftTarget
from compress.losses.tokens import token_cross_entropy_loss, token_kl_loss, token_soft_cross_entropy_loss
from compress.objective import Objective

STUDENT, TEACHER = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
COMPARED = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 1, 0, 1], [0, 0, 0, 0, 0]])
LABELS = torch.tensor([[-100, 2, -100, 0, -100], [3, -100, -100, -100, 1], [-100] * 5])
NONE, UNLABELLED = torch.zeros_like(COMPARED), torch.full_like(LABELS, -100)


def rows(logits: torch.Tensor, which: torch.Tensor, temperature: float = 1.0) -> np.ndarray:
    """Return the probabilities [token, label] of the tokens that count."""
    return softmax(logits[which].numpy() / temperature)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_kl_is_the_mean_over_the_tokens_that_are_compared(temperature: float) -> None:
    p, q = (rows(logits, COMPARED.bool(), temperature) for logits in (TEACHER, STUDENT))
    expected = temperature**2 * (p * np.log(p / q)).sum(-1).mean()
    loss = token_kl_loss(STUDENT, TEACHER, COMPARED, temperature=temperature)
    assert float(loss) == pytest.approx(expected, rel=1e-9)
    assert float(token_kl_loss(STUDENT, STUDENT, COMPARED, temperature=temperature)) == 0


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_soft_cross_entropy_is_the_mean_over_the_tokens_that_are_compared(temperature: float) -> None:
    p, q = (rows(logits, COMPARED.bool(), temperature) for logits in (TEACHER, STUDENT))
    loss = token_soft_cross_entropy_loss(STUDENT, TEACHER, COMPARED, temperature=temperature)
    assert float(loss) == pytest.approx(-(p * np.log(q)).sum(-1).mean(), rel=1e-9)


def test_cross_entropy_is_the_mean_over_the_tokens_that_have_a_label() -> None:
    labelled = LABELS >= 0
    q = rows(STUDENT, labelled)
    expected = -np.log(q[np.arange(len(q)), LABELS[labelled].numpy()]).mean()
    assert float(token_cross_entropy_loss(STUDENT, LABELS)) == pytest.approx(expected, rel=1e-9)


def losses(compared: torch.Tensor, labels: torch.Tensor) -> dict[str, object]:
    return {
        "kl": lambda x: token_kl_loss(x, TEACHER, compared, temperature=2.0),
        "soft": lambda x: token_soft_cross_entropy_loss(x, TEACHER, compared, temperature=2.0),
        "hard": lambda x: token_cross_entropy_loss(x, labels),
    }


@pytest.mark.parametrize("name", ["kl", "soft", "hard"])
def test_other_tokens_have_neither_a_share_nor_a_gradient(name: str) -> None:
    loss = losses(COMPARED, LABELS)[name]
    counted = (LABELS >= 0) if name == "hard" else COMPARED.bool()
    slopes = grad(loss, STUDENT)  # type: ignore[arg-type]
    assert torch.equal(slopes.abs().sum(-1) > 0, counted)
    changed = torch.where(counted[..., None], STUDENT, 50 * STUDENT)
    assert float(loss(changed)) == pytest.approx(float(loss(STUDENT)), rel=1e-12)  # type: ignore[operator]


@pytest.mark.parametrize("name", ["kl", "soft", "hard"])
def test_where_no_token_counts_it_is_zero_with_a_zero_gradient(name: str) -> None:
    loss = losses(NONE, UNLABELLED)[name]
    assert float(loss(STUDENT)) == 0  # type: ignore[operator]
    assert torch.equal(grad(loss, STUDENT), torch.zeros_like(STUDENT))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["kl", "soft", "hard"])
def test_no_tensor_s_shape_depends_on_which_tokens_count(name: str) -> None:
    """On meta tensors, which have no values, so that boolean indexing fails; on a GPU it would synchronize."""
    student, teacher = (torch.empty(3, 5, 4, device="meta") for _ in range(2))
    compared = torch.empty(3, 5, dtype=torch.int64, device="meta")
    loss = {
        "kl": lambda: token_kl_loss(student, teacher, compared, temperature=2.0),
        "soft": lambda: token_soft_cross_entropy_loss(student, teacher, compared, temperature=2.0),
        "hard": lambda: token_cross_entropy_loss(student, compared),
    }[name]()
    assert loss.shape == ()
    with pytest.raises(RuntimeError):
        student[compared.bool()]


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (HardLabel(), lambda: token_cross_entropy_loss(STUDENT, LABELS)),
        (SoftTarget(temperature=2.0), lambda: token_kl_loss(STUDENT, TEACHER, COMPARED, temperature=2.0)),
        (
            SoftCrossEntropy(temperature=3.0),
            lambda: token_soft_cross_entropy_loss(STUDENT, TEACHER, COMPARED, temperature=3.0),
        ),
    ],
)
def test_a_recipes_losses_are_those_of_the_kind(loss: LossSpec, expected: object) -> None:
    objective = Objective([loss], kind="tagging")
    (actual,) = objective({LOGITS: STUDENT}, {LOGITS: TEACHER}, {"labels": LABELS, "compared": COMPARED}).values()
    assert float(actual) == pytest.approx(float(expected()), rel=1e-5)  # type: ignore[operator]  # computed in fp32
    assert objective.means_over == {loss.name: "labelled_tokens" if loss.name == "hard_label" else "compared_tokens"}


def test_losses_on_logits_are_means_over_tokens_only_where_these_have_logits() -> None:
    specs = [HardLabel(), SoftTarget(), HiddenCosine()]
    of_words = {"hard_label": "labelled_tokens", "soft_target": "compared_tokens", "hidden_cosine": "tokens"}
    of_texts = {"hard_label": "examples", "soft_target": "examples", "hidden_cosine": "tokens"}
    assert Objective(specs, kind="tagging").means_over == of_words
    assert Objective(specs, kind="classification").means_over == of_texts
    assert {name for name, loss in LOSSES.items() if loss.reads == "logits"} == {
        "hard_label",
        "soft_target",
        "soft_cross_entropy",
        "margin_mse",  # for ranking alone
        "similarity_mse",
    }
    assert LAST_HIDDEN in Objective(specs, kind="tagging").student_features
