"""Training on a word table cut to the rows that the data reads: the weights end as with the whole table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from training_toys import BAD, GOOD, OTHER, fit, toy_data, toy_model, weights

from compress.losses.hard_label import HardLabel
from compress.objective import Objective
from compress.spec.stages import Training
from compress.tasks import TaskBatches
from compress.training import StepReport, loop
from compress.training.word_rows import CutWordTable, WordTable, cut_words

PAD, READ = 0, [0, 2, 3, GOOD, BAD, OTHER]
UNREAD = [token for token in range(13) if token not in READ]
SETTINGS = Training(epochs=2, batch_size=8, learning_rate=5e-3, weight_decay=0.3, warmup=0.2)


def table(model: Any) -> torch.Tensor:
    return model.get_input_embeddings().weight.detach().clone()


def left(steps: int, total: int = 8) -> float:
    """Return what remains of a weight without a gradient: AdamW subtracts rate · weight_decay of it at every step, and the rate
    rises over 0.2 of the steps, then falls to 0."""
    warmup, weight = round(0.2 * total), 1.0
    for step in range(steps):
        share = (step + 1) / (warmup + 1) if step < warmup else (total - step) / (total - warmup)
        weight *= 1 - 5e-3 * share * 0.3
    return weight


def test_the_weights_are_those_of_training_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cut, whole = toy_model(dropout=0), toy_model(dropout=0)
    fit(cut, SETTINGS, tmp_path / "cut")
    monkeypatch.setattr(loop, "cut_words", lambda *anything: WordTable())
    fit(whole, SETTINGS, tmp_path / "whole")
    after = weights(whole)
    for name, tensor in weights(cut).items():
        torch.testing.assert_close(tensor, after[name], rtol=2e-5, atol=2e-6, msg=name)
    assert not torch.equal(table(cut)[READ], table(toy_model())[READ])


def test_scoring_sees_the_whole_table_as_it_is_after_the_steps_so_far(tmp_path: Path):
    model, seen = toy_model(), list[torch.Tensor]()
    start = table(model)

    def score(scored: nn.Module) -> float:
        seen.append(table(scored))
        assert scored.get_input_embeddings()(torch.tensor([UNREAD])).isfinite().all()  # type: ignore[operator]
        return 0.0

    fit(model, SETTINGS, tmp_path, evaluate=score)
    for steps, rows in zip((4, 8), seen, strict=True):
        torch.testing.assert_close(rows[UNREAD], start[UNREAD] * left(steps), rtol=1e-6, atol=0)
    assert not torch.equal(seen[0][READ], seen[1][READ])


def test_the_rows_kept_are_those_of_the_best_step(tmp_path: Path):
    model, scores, seen = toy_model(), iter([2.0, 1.0]), list[torch.Tensor]()
    start = table(model)

    def score(scored: nn.Module) -> float:
        seen.append(table(scored))
        return next(scores)

    assert fit(model, SETTINGS, tmp_path, evaluate=score).best_step == 4
    assert torch.equal(table(model), seen[0])
    torch.testing.assert_close(table(model)[UNREAD], start[UNREAD] * left(4), rtol=1e-6, atol=0)


def test_the_model_has_its_own_table_again_afterwards(tmp_path: Path):
    model = toy_model()
    words = model.get_input_embeddings()
    own = words.weight
    fit(model, SETTINGS, tmp_path)
    assert words.weight is own and own.requires_grad
    assert (words.num_embeddings, words.padding_idx) == (13, PAD)
    assert not words._forward_pre_hooks


def batches() -> TaskBatches:
    return TaskBatches(toy_data(), batch_size=8, pad_id=PAD, seed=0)


def test_padding_has_no_gradient_in_the_cut_table():
    model = toy_model(dropout=0)
    cut_words(model, Objective((HardLabel(),)), batches(), lambda steps: 1.0)
    words = model.get_input_embeddings()
    words(torch.tensor([[PAD, GOOD]])).sum().backward()
    assert words.weight.grad[0].eq(0).all() and words.weight.grad[READ.index(GOOD)].eq(1).all()


def test_a_token_that_is_not_in_the_data_is_an_error_rather_than_another_row():
    model = toy_model()
    assert isinstance(cut_words(model, Objective((HardLabel(),)), batches(), lambda steps: 1.0), CutWordTable)
    with pytest.raises(IndexError):
        model.get_input_embeddings()(torch.tensor([UNREAD]))


def frozen(model: Any) -> None:
    model.get_input_embeddings().requires_grad_(False)


def tied(model: Any) -> None:
    model.output = nn.Linear(16, 13)
    model.output.weight = model.get_input_embeddings().weight


def hooked(model: Any) -> None:
    model.get_input_embeddings().register_forward_hook(lambda module, ids, rows: rows)


@pytest.mark.parametrize("change", [frozen, tied, hooked])
def test_a_table_that_is_more_than_looked_up_and_trained_stays_whole(change: Any):
    model = toy_model()
    own = model.get_input_embeddings().weight
    change(model)
    assert not isinstance(cut_words(model, Objective((HardLabel(),)), batches(), lambda steps: 1.0), CutWordTable)
    assert model.get_input_embeddings().weight is own


def test_so_does_one_that_a_loss_reads_and_one_of_which_all_is_read(monkeypatch: pytest.MonkeyPatch):
    model = toy_model()
    reads = Objective((HardLabel(),))
    reads.student_features |= {"words"}
    assert not isinstance(cut_words(model, reads, batches(), lambda steps: 1.0), CutWordTable)
    monkeypatch.setattr(TaskBatches, "tokens", lambda self: np.arange(13))
    assert not isinstance(cut_words(model, Objective((HardLabel(),)), batches(), lambda steps: 1.0), CutWordTable)


class Killed(Exception):
    pass


def until(last: int, steps: list[int]) -> Callable[[StepReport], None]:
    """Return a listener that records the steps, and raises in the one after `last`."""

    def note(report: StepReport) -> None:
        if report.step > last:
            raise Killed
        steps.append(report.step)

    return note


@pytest.mark.parametrize("first", [True, False])
def test_a_state_of_a_cut_table_goes_on_whole_and_the_other_way_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
):
    """As when --fsdp, which does not cut the table, is added or removed."""
    ended, states = list[dict[str, torch.Tensor]](), list[dict[str, torch.Tensor]]()
    for killed_cut, resumed_cut in ((first, first), (first, not first)):
        work, steps, model = tmp_path / str(resumed_cut), list[int](), toy_model(dropout=0)
        for cut, last in ((killed_cut, 5), (resumed_cut, 8)):
            monkeypatch.setattr(loop, "cut_words", cut_words if cut else lambda *anything: WordTable())
            model = toy_model(dropout=0)
            with pytest.raises(Killed) if last < 8 else nullcontext():
                fit(model, SETTINGS, work, on_step=until(last, steps), checkpoint_seconds=0)
        assert steps == [1, 2, 3, 4, 5, 6, 7, 8]
        ended.append(weights(model))
        states.append(load_file(work / "state.safetensors"))
    for one, other in (ended, states):
        assert one.keys() == other.keys()
        for name, tensor in one.items():
            torch.testing.assert_close(other[name], tensor, rtol=2e-5, atol=2e-6, msg=name)


def test_data_whose_tokens_are_not_known_trains_the_whole_table():
    model = toy_model()
    assert not isinstance(cut_words(model, Objective((HardLabel(),)), object(), lambda steps: 1.0), CutWordTable)
    assert len(table(model)) == 13


def test_the_last_weights_have_lost_what_weight_decay_takes_of_rows_that_nothing_reads(tmp_path: Path):
    model = toy_model()
    start = table(model)
    fit(model, SETTINGS, tmp_path, evaluate=None)  # type: ignore[arg-type]
    torch.testing.assert_close(table(model)[UNREAD], start[UNREAD] * left(8), rtol=1e-6, atol=0)
