"""What a training run does to the weights, and when it stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_teachers import plain_classifier
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from training_toys import GOOD, fit, same, toy_data, toy_model, weights

from compress.errors import CheckFailed
from compress.losses.hard_label import HardLabel
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.soft_target import SoftTarget
from compress.models.features.named import Features, compute_features
from compress.models.features.predict import predict_logits
from compress.objective import Objective
from compress.spec.stages import Training
from compress.training import StepReport
from compress.training.loop import _optimizer


def test_the_loss_goes_down_and_the_toy_is_learnt(tmp_path: Path):
    model, reports = toy_model(), list[StepReport]()
    settings = Training(epochs=12, batch_size=4, learning_rate=5e-3, keep="last")
    outcome = fit(model, settings, tmp_path, on_step=reports.append)
    assert outcome.steps == len(reports) == reports[0].total == 12 * 7
    losses = [report.losses["hard_label"] for report in reports]
    assert np.mean(losses[:7]) > 0.5
    assert np.mean(losses[-7:]) < 0.05
    new = toy_data(200, seed=1)
    assert (predict_logits(model, new, 0).argmax(1) == new.labels).mean() > 0.97


def test_reports_count_examples_tokens_and_epochs(tmp_path: Path):
    data, reports = toy_data(), list[StepReport]()
    fit(toy_model(), Training(epochs=2, batch_size=8, warmup=0), tmp_path, data=data, on_step=reports.append)
    assert [report.examples for report in reports[:4]].count(8) == 3  # 28 = 8 + 8 + 8 + 4
    assert sum(report.tokens for report in reports) == 2 * data.lengths.sum()
    assert [report.epoch for report in reports] == [step / 4 for step in range(1, 9)]
    assert reports[0].learning_rate > reports[-1].learning_rate > 0
    assert [report.step for report in reports if report.tuning is not None] == [4, 8]


def gradients(settings: Training, objective: Objective, work: Path) -> list[dict[str, Tensor]]:
    """Return the gradients at each step; the limit is too high for clipping to change them."""
    model, step_gradients = toy_model(dropout=0), list[dict[str, Tensor]]()
    table = torch.randn(28, 2, generator=torch.Generator().manual_seed(0))
    other = toy_model(dropout=0, seed=2).eval()

    def teacher(batch: dict[str, Tensor], indices: np.ndarray) -> Features:
        with torch.no_grad():
            return {**compute_features(other, batch, ["hidden[-1]"]), "logits": table[torch.from_numpy(indices)]}

    def record(optimizer: Any, arguments: Any, keywords: Any) -> None:
        step_gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})

    handle = register_optimizer_step_pre_hook(record)
    try:
        fit(model, settings, work, objective=objective, teacher=teacher)
    finally:
        handle.remove()
    return step_gradients


@pytest.mark.parametrize("micro", [1, 3, 8, 50])
def test_accumulated_gradients_are_those_of_the_whole_batch(tmp_path: Path, micro: int):
    """3 does not divide 8, and each micro-batch is padded to its own length, so the weights of the parts matter."""
    objective = Objective((SoftTarget(weight=2.0), HardLabel(), HiddenCosine(weight=3.0)))
    settings = Training(max_steps=1, batch_size=8, max_grad_norm=1e9)
    (whole,) = gradients(settings, objective, tmp_path / "whole")
    (parts,) = gradients(settings.model_copy(update={"micro_batch_size": micro}), objective, tmp_path / "parts")
    assert whole.keys() == parts.keys()
    largest = max(grad.abs().max().item() for grad in whole.values())
    for name, grad in whole.items():  # fp32 sums in another order
        torch.testing.assert_close(parts[name], grad, rtol=1e-4, atol=1e-6 * largest, msg=name)


def test_losses_of_micro_batches_add_up(tmp_path: Path):
    reports: list[StepReport] = []
    for micro in (None, 3):
        settings = Training(max_steps=1, batch_size=8, micro_batch_size=micro)
        fit(toy_model(dropout=0), settings, tmp_path / str(micro), on_step=reports.append)
    assert reports[0].losses["hard_label"] == pytest.approx(reports[1].losses["hard_label"], rel=1e-5)


class Custom(Objective):
    """An objective with the loss `custom`, which the test defines as a function of the logits."""

    def __init__(self, term: Any) -> None:
        super().__init__((HardLabel(),))
        self._custom = term

    def forward(self, student: Features, teacher: Features, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"hard_label": student["logits"].sum() * 0, "custom": self._custom(student["logits"])}


def test_weight_decay_is_for_matrices_alone(tmp_path: Path):
    """With a gradient of zero AdamW only decays weights, by a factor of 1 - rate · decay per step."""
    model = toy_model()
    before = weights(model)
    settings = Training(max_steps=2, schedule="constant", warmup=0, learning_rate=0.1, weight_decay=0.5, keep="last")
    fit(model, settings, tmp_path, objective=Custom(lambda logits: logits.sum() * 0))
    for name, tensor in weights(model).items():
        factor = 0.95**2 if tensor.ndim > 1 else 1.0
        torch.testing.assert_close(tensor, before[name] * factor, rtol=1e-6, atol=0, msg=name)


def test_a_bias_of_each_head_does_not_decay():
    model = plain_classifier("xlnet")
    biases = {id(parameter) for name, parameter in model.named_parameters() if name.endswith("bias")}
    assert model.transformer.layer[0].rel_attn.r_w_bias.ndim == 2
    decaying, others = _optimizer(model, Objective((HardLabel(),)), Training()).param_groups
    assert decaying["weight_decay"] and not others["weight_decay"]
    assert biases <= {id(parameter) for parameter in others["params"]}


def test_the_gradient_is_clipped_to_its_norm(tmp_path: Path):
    norms = []

    def record(optimizer: Any, arguments: Any, keywords: Any) -> None:
        grads = [p.grad.flatten() for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norms.append(torch.cat(grads).norm().item())

    handle = register_optimizer_step_pre_hook(record)
    try:
        settings = Training(max_steps=2, max_grad_norm=0.25)
        fit(toy_model(), settings, tmp_path, objective=Custom(lambda logits: 100 * logits.sum()))
    finally:
        handle.remove()
    assert norms == pytest.approx([0.25, 0.25], rel=1e-4)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (
            lambda logits: logits.sum() * float("nan"),
            "step 1: loss custom is nan; stopped before the weights were touched",
        ),
        (lambda logits: logits.sum() + float("inf"), "step 1: loss custom is inf; stopped before"),
        (lambda logits: (logits - logits).sum().sqrt(), "step 1: the gradient's norm is nan; stopped before"),
    ],
)
def test_a_loss_or_gradient_that_is_not_finite_stops_before_the_weights(tmp_path: Path, term: Any, message: str):
    model = toy_model()
    before = weights(model)
    with pytest.raises(CheckFailed, match=message) as caught:
        fit(model, Training(), tmp_path, objective=Custom(term))
    assert caught.value.exit_code == 1
    assert same(weights(model), before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("precision", "advice"), [("fp32", "Lower learning_rate$"), ("bf16", "--precision fp32$")])
def test_fp32_is_advised_where_it_is_not_used_yet(tmp_path: Path, precision: str, advice: str):
    with pytest.raises(CheckFailed, match=advice):
        fit(toy_model(), Training(), tmp_path, objective=Custom(lambda logits: logits.sum() / 0), precision=precision)


def scripted(scores: list[float], seen: list[dict[str, Tensor]]) -> Any:
    def evaluate(model: nn.Module) -> float:
        seen.append(weights(model))
        return scores[len(seen) - 1]

    return evaluate


@pytest.mark.parametrize(
    ("keep", "scores", "kept"),
    [
        ("best", [10.0, 30.0, 20.0], 1),
        ("best", [10.0, 20.0, 30.0], 2),
        ("best", [30.0, 30.0, 20.0], 0),  # the first of equal scores
        ("last", [10.0, 30.0, 20.0], 2),
    ],
)
def test_the_weights_that_are_kept(tmp_path: Path, keep: Any, scores: list[float], kept: int):
    model, seen = toy_model(), list[dict[str, Tensor]]()
    settings = Training(epochs=3, batch_size=8, keep=keep)
    outcome = fit(model, settings, tmp_path, evaluate=scripted(scores, seen))
    assert not same(seen[0], seen[1])
    assert same(weights(model), seen[kept])
    assert (outcome.best_score, outcome.best_step) == (scores[kept], 4 * (kept + 1))
    assert outcome.history == [{"step": 4 * (i + 1), "score": score} for i, score in enumerate(scores)]


def test_evaluations_come_as_often_as_asked_and_always_at_the_end(tmp_path: Path):
    steps = []
    for every in (0.5, 1.5, 0.01):
        reports: list[StepReport] = []
        settings = Training(max_steps=7, batch_size=8, evaluate_every=every)
        fit(toy_model(), settings, tmp_path / str(every), on_step=reports.append)
        steps.append([report.step for report in reports if report.tuning is not None])
    assert steps == [[2, 4, 6, 7], [6, 7], [1, 2, 3, 4, 5, 6, 7]]


def test_the_seed_alone_decides_the_weights(tmp_path: Path):
    models = [toy_model(), toy_model()]
    for index, model in enumerate(models):
        torch.manual_seed(index)
        fit(model, Training(epochs=1, batch_size=8), tmp_path / str(index))
    assert same(weights(models[0]), weights(models[1]))


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_weights_are_fp32_in_every_precision_that_one_process_trains_in(tmp_path: Path, precision: str):
    model, kinds = toy_model(), set[torch.dtype]()
    before = weights(model)
    model.classifier.register_forward_hook(lambda module, inputs, output: kinds.add(output.dtype))
    fit(model, Training(epochs=1, batch_size=8), tmp_path, precision=precision)
    assert kinds == {torch.bfloat16 if precision == "bf16" else torch.float32}
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not same(weights(model), before)


def test_a_model_that_trains_in_bf16_is_scored_in_fp32_and_left_so(tmp_path: Path):
    """The decision thresholds are chosen on its outputs after training, for a graph in fp32."""
    model, dtypes = toy_model(), list[torch.dtype]()
    tokens = torch.tensor([[1, GOOD, 2]])

    def score(scored: torch.nn.Module) -> float:
        with torch.no_grad():
            scored(input_ids=tokens)
        return 0.0

    settings = Training(epochs=1, batch_size=8)
    hook = model.classifier.register_forward_hook(lambda module, inputs, output: dtypes.append(output.dtype))
    steps = fit(model, settings, tmp_path, precision="bf16", evaluate=score).steps
    score(model.train())
    assert dtypes == [torch.bfloat16] * steps + [torch.float32] * 2
    hook.remove()
    assert (
        model(input_ids=tokens, return_dict=False)[0].dtype == torch.float32
    )  # transformers' own decorators are restored


def test_dropout_is_drawn_by_the_seed_of_the_data(tmp_path: Path):
    seeds: list[int] = []
    settings = Training(epochs=1, batch_size=8)
    fit(toy_model(), settings, tmp_path, on_step=lambda report: seeds.append(torch.initial_seed()))
    assert set(seeds) == {5}
