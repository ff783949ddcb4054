"""Losses on start and end logits, against explicit sums over the tokens that count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from loss_checks import grad, softmax

from compress.losses.features import LAST_HIDDEN, LOGITS
from compress.losses.hard_label import HardLabel
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.loss import LossSpec
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.losses.soft_target import SoftTarget
from compress.losses.spans import moved_logits, span_cross_entropy_loss, span_kl_loss, span_soft_cross_entropy_loss
from compress.objective import Objective

STUDENT, TEACHER = torch.randn(2, 3, 6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
# 1: [CLS], question, separator, two context tokens, separator; 2: [CLS] last; 3: only [CLS].
COMPARED = torch.tensor([[1, 0, 0, 1, 1, 0], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 0, 0]])
LABELS = torch.tensor([[3, 4], [5, 5], [0, 0]])


def rows(logits: torch.Tensor, temperature: float = 1.0) -> list[np.ndarray]:
    """Return, for each window and side, the probabilities of the tokens that count."""
    pairs = zip(logits, COMPARED.bool(), strict=True)
    return [softmax(window[which, side].numpy()[None] / temperature)[0] for window, which in pairs for side in (0, 1)]


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_kl_is_the_mean_of_start_and_end_over_the_windows(temperature: float) -> None:
    pairs = zip(rows(TEACHER, temperature), rows(STUDENT, temperature), strict=True)
    expected = temperature**2 * np.mean([(p * np.log(p / q)).sum() for p, q in pairs])
    loss = span_kl_loss(STUDENT, TEACHER, COMPARED, temperature=temperature)
    assert float(loss) == pytest.approx(expected, rel=1e-9)
    assert float(span_kl_loss(STUDENT, STUDENT, COMPARED, temperature=temperature)) == 0


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_soft_cross_entropy_is_the_mean_of_start_and_end_over_the_windows(temperature: float) -> None:
    pairs = zip(rows(TEACHER, temperature), rows(STUDENT, temperature), strict=True)
    expected = np.mean([-(p * np.log(q)).sum() for p, q in pairs])
    loss = span_soft_cross_entropy_loss(STUDENT, TEACHER, COMPARED, temperature=temperature)
    assert float(loss) == pytest.approx(expected, rel=1e-9)


def test_cross_entropy_is_the_mean_of_start_and_end_over_the_windows() -> None:
    # Indices of the gold tokens among those that count.
    gold = [1, 2, 2, 2, 0, 0]
    expected = np.mean([-np.log(q[place]) for q, place in zip(rows(STUDENT), gold, strict=True)])
    assert float(span_cross_entropy_loss(STUDENT, LABELS, COMPARED)) == pytest.approx(expected, rel=1e-9)


def test_cross_entropy_is_transformers_own_where_every_token_counts() -> None:
    everywhere = torch.ones_like(COMPARED)
    own = [torch.nn.functional.cross_entropy(STUDENT[..., side], LABELS[:, side]) for side in (0, 1)]
    assert float(span_cross_entropy_loss(STUDENT, LABELS, everywhere)) == pytest.approx(float(sum(own) / 2), rel=1e-12)


def losses(dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    teacher = TEACHER.to(dtype)
    return {
        "kl": lambda x: span_kl_loss(x, teacher, COMPARED, temperature=2.0),
        "soft": lambda x: span_soft_cross_entropy_loss(x, teacher, COMPARED, temperature=2.0),
        "hard": lambda x: span_cross_entropy_loss(x, LABELS, COMPARED),
    }


@pytest.mark.parametrize("name", ["kl", "soft", "hard"])
def test_other_tokens_have_neither_a_share_nor_a_gradient(name: str) -> None:
    loss = losses()[name]
    slopes = grad(loss, STUDENT)
    assert bool(slopes.isfinite().all())
    counted = COMPARED.bool() & torch.tensor([[True], [True], [False]])  # a single token is certain
    assert torch.equal(slopes.abs().sum(-1) > 0, counted)
    changed = torch.where(COMPARED.bool()[..., None], STUDENT, 50 * STUDENT)
    assert float(loss(changed)) == pytest.approx(float(loss(STUDENT)), rel=1e-12)


@pytest.mark.parametrize("name", ["kl", "soft", "hard"])
def test_padding_never_changes_them(name: str) -> None:
    student, teacher = (torch.nn.functional.pad(logits, (0, 0, 0, 5), value=9.0) for logits in (STUDENT, TEACHER))
    compared = torch.nn.functional.pad(COMPARED, (0, 5))
    loss = {
        "kl": lambda: span_kl_loss(student, teacher, compared, temperature=2.0),
        "soft": lambda: span_soft_cross_entropy_loss(student, teacher, compared, temperature=2.0),
        "hard": lambda: span_cross_entropy_loss(student, LABELS, compared),
    }[name]()
    assert float(loss) == pytest.approx(float(losses()[name](STUDENT)), rel=1e-12)


@pytest.mark.parametrize("name", ["kl", "soft", "hard"])
def test_large_logits_stay_finite_in_fp32(name: str) -> None:
    huge = STUDENT.float() * 1e4
    loss = losses(torch.float32)[name]
    assert bool(loss(huge).isfinite()) and bool(grad(loss, huge).isfinite().all())


def test_the_gradient_of_cross_entropy_is_probability_less_gold_over_all_sides() -> None:
    slopes = grad(losses()["hard"], STUDENT)
    shares = torch.where(COMPARED.bool()[..., None], STUDENT, -torch.inf).softmax(1)
    gold = torch.nn.functional.one_hot(LABELS, 6).transpose(1, 2)
    torch.testing.assert_close(slopes, (shares - gold) / 6, rtol=0, atol=1e-12)  # three windows, two sides


@pytest.mark.parametrize("name", ["kl", "soft", "hard"])
def test_no_tensor_s_shape_depends_on_which_tokens_count(name: str) -> None:
    """On meta tensors, which have no values, so that boolean indexing fails; on a GPU it would synchronize."""
    student, teacher = (torch.empty(3, 5, 2, device="meta") for _ in range(2))
    compared = torch.empty(3, 5, dtype=torch.int64, device="meta")
    loss = {
        "kl": lambda: span_kl_loss(student, teacher, compared, temperature=2.0),
        "soft": lambda: span_soft_cross_entropy_loss(student, teacher, compared, temperature=2.0),
        "hard": lambda: span_cross_entropy_loss(student, compared[:, :2], compared),
    }[name]()
    assert loss.shape == ()


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (HardLabel(), lambda: span_cross_entropy_loss(STUDENT, LABELS, COMPARED)),
        (SoftTarget(temperature=2.0), lambda: span_kl_loss(STUDENT, TEACHER, COMPARED, temperature=2.0)),
        (
            SoftCrossEntropy(temperature=3.0),
            lambda: span_soft_cross_entropy_loss(STUDENT, TEACHER, COMPARED, temperature=3.0),
        ),
    ],
)
def test_a_recipes_losses_are_those_of_the_kind(loss: LossSpec, expected: Any) -> None:
    objective = Objective([loss], kind="span")
    (actual,) = objective({LOGITS: STUDENT}, {LOGITS: TEACHER}, {"labels": LABELS, "compared": COMPARED}).values()
    assert float(actual) == pytest.approx(float(expected()), rel=1e-5)  # computed in fp32
    assert objective.means_over == {loss.name: "examples"}


def test_losses_on_states_are_means_over_tokens_and_those_on_logits_over_windows() -> None:
    objective = Objective([HardLabel(), SoftTarget(), HiddenCosine()], kind="span")
    assert objective.means_over == {"hard_label": "examples", "soft_target": "examples", "hidden_cosine": "tokens"}
    assert LAST_HIDDEN in objective.student_features


def test_probabilities_move_with_their_tokens() -> None:
    """Probabilities moved to the same token add up; those without a place are dropped, and the rest is normalized."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 5, 2)) * 3
    places = np.array([[[0, 0], [-1, -1], [3, 3], [3, 4], [-1, 4]], [[2, 2], [0, 1], [0, 1], [-1, -1], [-1, -1]]])
    actual = moved_logits(torch.from_numpy(logits), torch.from_numpy(places), 6)
    assert actual.shape == (2, 6, 2) and actual.dtype == torch.float32 and bool(actual.isfinite().all())
    for window in range(2):
        for side in (0, 1):
            expected = np.zeros(6)
            for token, place in enumerate(places[window, :, side]):
                if place >= 0:
                    expected[place] += np.exp(logits[window, token, side])
            expected /= expected.sum()
            assert actual[window, :, side].softmax(0).numpy() == pytest.approx(expected, abs=1e-6)
            assert bool((actual[window, :, side].exp() == 0).numpy()[expected == 0].all())


def test_moved_probabilities_teach_at_any_temperature() -> None:
    """A token without probability has none after division either, and contributes neither loss nor gradient."""
    places = torch.arange(6)[None, :, None].expand(3, 6, 2).clone()
    places[~COMPARED.bool()] = -1
    moved = moved_logits(TEACHER, places, 6)
    for temperature in (0.1, 1.0, 2.5):
        expected = span_kl_loss(STUDENT.float(), TEACHER.float(), COMPARED, temperature=temperature)
        actual = span_kl_loss(STUDENT.float(), moved, COMPARED, temperature=temperature)
        assert float(actual) == pytest.approx(float(expected), rel=1e-4)
    places[:, 3] = -1
    slopes = grad(
        lambda x: span_kl_loss(x, moved_logits(TEACHER, places, 6), COMPARED, temperature=0.1), STUDENT.float()
    )
    loss = span_kl_loss(STUDENT.float(), moved_logits(TEACHER, places, 6), COMPARED, temperature=0.1)
    assert bool(slopes.isfinite().all()) and bool(loss.isfinite())
