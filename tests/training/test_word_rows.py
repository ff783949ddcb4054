"""The table of words is cut to what the data reads while it is trained: the weights afterwards are those of the whole one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from training_toys import BAD, GOOD, OTHER, fit, same, toy_data, toy_model, weights

from compress.losses.hard_label import HardLabel
from compress.objective import Objective
from compress.spec.stages import Training
from compress.tasks import TaskBatches
from compress.training import loop
from compress.training.word_rows import cut_words

PAD, READ = 0, [0, 2, 3, GOOD, BAD, OTHER]
UNREAD = [token for token in range(13) if token not in READ]
SETTINGS = Training(epochs=2, batch_size=8, learning_rate=5e-3, weight_decay=0.3, warmup=0.2)


def table(model: Any) -> torch.Tensor:
    return model.get_input_embeddings().weight.detach().clone()


def left(steps: int, total: int = 8) -> float:
    """Of a weight without a gradient: AdamW takes rate · weight_decay of it at every step; the rate goes up over 0.2 of the steps
    and then down to 0."""
    warmup, found = round(0.2 * total), 1.0
    for step in range(steps):
        share = (step + 1) / (warmup + 1) if step < warmup else (total - step) / (total - warmup)
        found *= 1 - 5e-3 * share * 0.3
    return found


def test_the_weights_are_those_of_training_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cut, whole = toy_model(dropout=0), toy_model(dropout=0)
    fit(cut, SETTINGS, tmp_path / "cut")
    monkeypatch.setattr(loop, "cut_words", lambda *anything: None)
    fit(whole, SETTINGS, tmp_path / "whole")
    rows = {
        name: load_file(tmp_path / name / "state.safetensors")["model.0.bert.embeddings.word_embeddings.weight"]
        for name in ("cut", "whole")
    }
    assert (len(rows["cut"]), len(rows["whole"])) == (len(READ), 13)
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
    assert cut_words(model, Objective((HardLabel(),)), batches(), lambda steps: 1.0)
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
    assert cut_words(model, Objective((HardLabel(),)), batches(), lambda steps: 1.0) is None
    assert model.get_input_embeddings().weight is own


def test_so_does_one_that_a_loss_reads_and_one_of_which_all_is_read(monkeypatch: pytest.MonkeyPatch):
    model = toy_model()
    reads = Objective((HardLabel(),))
    reads.student_features |= {"words"}
    assert cut_words(model, reads, batches(), lambda steps: 1.0) is None
    monkeypatch.setattr(TaskBatches, "tokens", lambda self: np.arange(13))
    assert cut_words(model, Objective((HardLabel(),)), batches(), lambda steps: 1.0) is None


def test_a_state_of_the_whole_table_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As an earlier version left it."""
    with monkeypatch.context() as earlier:
        earlier.setattr(loop, "cut_words", lambda *anything: None)
        fit(toy_model(), SETTINGS, tmp_path)
    resumed, alone = toy_model(), toy_model()
    assert fit(resumed, SETTINGS, tmp_path).steps == fit(alone, SETTINGS, tmp_path / "alone").steps
    assert same(weights(resumed), weights(alone))


def test_data_whose_tokens_are_not_known_trains_the_whole_table():
    model = toy_model()
    assert cut_words(model, Objective((HardLabel(),)), object(), lambda steps: 1.0) is None
    assert len(table(model)) == 13
