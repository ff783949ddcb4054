"""An interrupted run resumes bit for bit: with dropout, within an epoch, wherever it was stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import slow
from listeners import StopError
from torch import Tensor, nn
from training_toys import Projected, fit, same, toy_model, weights

from compress.errors import Interrupted
from compress.processes import signals
from compress.spec.stages import Training
from compress.training import Outcome, StepReport, state

pytestmark = pytest.mark.end_to_end

SETTINGS = Training(epochs=2.5, batch_size=8, learning_rate=1e-3, evaluate_every=0.75)
TOTAL = 10
SCORES = {3: 20.0, 6: 40.0, 9: 10.0, 10: 30.0}  # by step; the best weights are neither the first nor the last


def stop_at(step: int) -> Callable[[StepReport], None]:
    def on_step(report: StepReport) -> None:
        if report.step == step:
            raise StopError

    return on_step


WeightsAndOutcome = tuple[dict[str, Tensor], Outcome]


def run(
    work: Path, seconds: float = 1e9, on_step: Any = lambda report: None, dropout: float = 0.1
) -> WeightsAndOutcome:
    """Run one process's part of the training, always with the same model and objective."""
    model, objective = toy_model(dropout=dropout), Projected()
    torch.manual_seed(77)  # the random state that the process happens to have
    outcome = fit(
        model, SETTINGS, work, objective=objective, checkpoint_seconds=seconds, on_step=on_step,
        evaluate=lambda model: SCORES[int(objective.steps)],
    )  # fmt: skip
    return weights(model, objective), outcome


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> WeightsAndOutcome:
    """Return the result of the run without interruption."""
    state, outcome = run(tmp_path_factory.mktemp("whole"))
    assert (outcome.steps, outcome.best_step, outcome.best_score) == (TOTAL, 6, 40.0)
    return state, outcome


def ends_like(whole: WeightsAndOutcome, work: Path, seconds: float = 1e9) -> list[int]:
    """Resume, compare with the uninterrupted run bit for bit, and return the steps taken."""
    steps: list[int] = []
    state, outcome = run(work, seconds, lambda report: steps.append(report.step))
    assert same(state, whole[0])
    assert outcome == whole[1]
    return steps


SOME = (1, 3, 5, TOTAL)  # the first, an evaluated one, one without evaluation, the last


@pytest.mark.parametrize("step", [*SOME, *slow(*(step for step in range(1, TOTAL + 1) if step not in SOME))])
@pytest.mark.parametrize("seconds", [-1.0, 1e9], ids=["saved at every step", "saved after evaluations"])
def test_a_stop_after_any_step(tmp_path: Path, whole: WeightsAndOutcome, step: int, seconds: float):
    with pytest.raises(StopError):  # after the step, and its evaluation, before the state is saved
        run(tmp_path, seconds, stop_at(step))
    saved = step - 1 if seconds < 0 else (step - 1) // 3 * 3
    assert ends_like(whole, tmp_path, seconds) == list(range(saved + 1, TOTAL + 1))


def test_dropout_is_on_in_these_tests(tmp_path: Path, whole: WeightsAndOutcome):
    assert not same(run(tmp_path, dropout=0.0)[0], whole[0])


def test_what_the_objective_learns_is_trained_and_kept(whole: WeightsAndOutcome):
    fresh = weights(toy_model(), Projected())
    changed = {name for name in fresh if name.startswith("1.") and not torch.equal(fresh[name], whole[0][name])}
    assert changed == {"1.projection.weight", "1.projection.bias", "1.steps"}
    assert whole[0]["1.steps"] == 6  # that of the best weights, which were kept


def test_many_stops_in_one_run(tmp_path: Path, whole: WeightsAndOutcome):
    for step in (2, 3, 4, 7, 10):
        with pytest.raises(StopError):
            run(tmp_path, -1, stop_at(step))
    assert ends_like(whole, tmp_path) == [10]


def test_a_run_that_was_finished_gives_its_weights_again(tmp_path: Path, whole: WeightsAndOutcome):
    assert ends_like(whole, tmp_path) == list(range(1, TOTAL + 1))
    assert ends_like(whole, tmp_path) == []


@pytest.mark.parametrize("kept", [0, 7, 0.5, -1])
def test_a_truncated_state_is_not_used(tmp_path: Path, whole: WeightsAndOutcome, kept: float):
    with pytest.raises(StopError):
        run(tmp_path, -1, stop_at(6))
    path = tmp_path / "state.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept) if 0 < kept < 1 else int(kept)])
    assert ends_like(whole, tmp_path) == list(range(1, TOTAL + 1))


@pytest.mark.parametrize(("file", "writes"), [("state", 1), ("state", 4), ("best", 1), ("best", 2)])
def test_a_stop_in_the_middle_of_a_write_leaves_the_old_file(
    tmp_path: Path, whole: WeightsAndOutcome, monkeypatch: pytest.MonkeyPatch, file: str, writes: int
):
    """The `writes`-th time that `file` is written, only half of it reaches the disk."""
    written, save_file = list[str](), state.save_file

    def save_half(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
        save_file(tensors, path, metadata=metadata)
        written.append(path.name.lstrip(".").partition("-")[0].partition(".")[0])
        if written.count(file) == writes:
            path.write_bytes(path.read_bytes()[:-1000])
            raise StopError

    with monkeypatch.context() as patch, pytest.raises(StopError):
        patch.setattr(state, "save_file", save_half)
        run(tmp_path, -1)
    steps = ends_like(whole, tmp_path)
    assert steps[0] == written.count("state") + (file == "best")  # after the last complete state


def test_only_the_state_and_the_best_weights_stay(tmp_path: Path):
    run(tmp_path, -1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best-6.safetensors", "state.safetensors"]


@pytest.fixture
def handled() -> Iterator[None]:
    """Handle SIGINT and SIGTERM as the command line does."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signals.install()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handled")
@pytest.mark.parametrize("number", [signal.SIGTERM, *slow(signal.SIGINT)])
@pytest.mark.parametrize("step", [1, 3, 5, TOTAL])
def test_a_signal_saves_and_then_stops(tmp_path: Path, whole: WeightsAndOutcome, number: signal.Signals, step: int):
    """Also at the last step, where nothing is left to train: the stages after training must not start."""

    def on_step(report: StepReport) -> None:
        if report.step == step:
            signal.raise_signal(number)

    with pytest.raises(Interrupted, match=f"stopped at step {step} of {TOTAL}; the same command") as caught:
        run(tmp_path, on_step=on_step)
    assert caught.value.exit_code == 128 + number
    assert signals.requested_signal() is None
    assert ends_like(whole, tmp_path) == list(range(step + 1, TOTAL + 1))


@pytest.mark.usefixtures("handled")
def test_a_second_signal_stops_at_once_and_the_run_is_not_lost(tmp_path: Path, whole: WeightsAndOutcome):
    def on_step(report: StepReport) -> None:
        if report.step == 5:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(
        Interrupted, match=r"^interrupted; run the same command to continue: it does not repeat finished steps"
    ):
        run(tmp_path, on_step=on_step)
    assert ends_like(whole, tmp_path) == list(range(4, TOTAL + 1))  # saved after the evaluation at 3


@pytest.mark.usefixtures("handled")
def test_a_signal_that_nobody_asks_for_is_raised_at_the_end():
    reached = False
    with pytest.raises(Interrupted) as caught, signals.deferred():
        signal.raise_signal(signal.SIGTERM)
        reached = True
    assert reached
    assert caught.value.exit_code == 143
    with signals.deferred():
        assert signals.requested_signal() is None
    with pytest.raises(ValueError, match="first"), signals.deferred():  # the first error is raised
        signal.raise_signal(signal.SIGTERM)
        raise ValueError("first")


def test_state_restores_every_tensor_and_the_generator(tmp_path: Path):
    model = toy_model()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(2):
        model(torch.tensor([[2, 10, 3]])).logits.sum().backward()
        optimizer.step()
    progress = state.Progress(2, 61.5, 1, [{"step": 1, "score": 61.5}])
    state.save(tmp_path / "s.safetensors", progress, [model], optimizer)
    drawn = torch.rand(3)
    other = toy_model(seed=8)
    fresh = torch.optim.AdamW(other.parameters(), fused=True)
    assert state.restore(tmp_path / "s.safetensors", [other], fresh) == progress
    assert same(weights(model), weights(other))
    assert torch.equal(torch.rand(3), drawn)
    old, new = optimizer.state_dict()["state"], fresh.state_dict()["state"]
    assert old.keys() == new.keys()
    assert len(old) > 30
    for index, moments in old.items():
        assert moments.keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(value, new[index][name]) for name, value in moments.items())
    assert state.restore(tmp_path / "absent.safetensors", [other], fresh) is None


def test_tied_weights_are_kept_once(tmp_path: Path):
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    two.weight = one.weight
    state.save_weights(tmp_path / "w.safetensors", [one, two])
    fresh, tied = nn.Linear(4, 4), nn.Linear(4, 4)
    tied.weight = fresh.weight
    state.load_weights(tmp_path / "w.safetensors", [fresh, tied])
    assert same(weights(one, two), weights(fresh, tied))
    assert len(state.trainable([one, two])) == 3
    np.testing.assert_array_equal(fresh.weight.detach().numpy(), tied.weight.detach().numpy())
