"""A tiny ALBERT learns the order of segments from text that has one, and resumes where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training_toys import same, weights
from transformers import AlbertConfig, AlbertModel

from compress.corpus import MaskedBatches, PairBatches, TokenShards
from compress.errors import Interrupted
from compress.losses.masked_lm import MaskedTokens
from compress.losses.segment_pairs import SentenceOrder
from compress.models.features.named import compute_features
from compress.models.features.predict import to_tensors
from compress.models.masked_head import MaskedLmHeads
from compress.models.masked_lm import masked_lm_around
from compress.objective import Objective
from compress.processes import signals
from compress.spec.stages import Training
from compress.tokenization.special import SpecialIds
from compress.training import make_accelerator, train

SPECIAL = SpecialIds(cls=2, sep=3, pad=0, mask=4, every=(0, 1, 2, 3, 4))
BEFORE, AFTER = 10, 20  # the first tokens of the early and of the late half of a document's vocabulary


def text(documents: int, seed: int) -> TokenShards:
    """Return documents of 13 tokens: random early words, then random late words."""
    rng = np.random.default_rng(seed)
    early, late = (rng.integers(first, first + 10, (documents, size)) for first, size in ((BEFORE, 6), (AFTER, 7)))
    tokens = np.concatenate([early, late, np.full((documents, 1), SPECIAL.sep)], axis=1)
    return TokenShards((tokens.ravel().astype(np.uint16),), SPECIAL, 30)


def pairs(documents: int = 400, seed: int = 0) -> PairBatches:
    return PairBatches(text(documents, seed), length=16, batch_size=16, seed=seed)


def albert() -> Any:
    torch.manual_seed(0)
    size = {"vocab_size": 30, "embedding_size": 16, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    size |= {"num_attention_heads": 2, "max_position_embeddings": 16}
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return AlbertModel(AlbertConfig.from_dict({**size, **rates, "initializer_range": 0.2}))  # trains faster


def learn(work: Path, encoder: Any, objective: Objective, data: Any, steps: int, on_step: Any = lambda step: None):
    return train(
        encoder,
        objective,
        data,
        Training(batch_size=16, max_steps=steps, epochs=100, learning_rate=5e-3, micro_batch_size=8),
        accelerator=make_accelerator("fp32"),
        teacher=lambda batch, indices: {},
        evaluate=None,
        work=work,
        on_step=on_step,
    )


@torch.no_grad()
def accuracy(encoder: Any, objective: Objective) -> float:
    """Return the accuracy on unseen documents."""
    data = pairs(200, seed=99)
    batch = to_tensors(data.collate(np.arange(data.count)), torch.device("cpu"))
    logits = objective.heads["sentence_order"](compute_features(encoder.eval(), batch, ["pooled"])["pooled"])
    return (logits.argmax(1) == batch["sentence_order"]).float().mean().item()


@pytest.mark.slow
def test_it_learns_the_order_of_new_text_alone_and_beside_masked_tokens(tmp_path: Path):
    for masked in (False, True):
        encoder = albert()
        head = MaskedLmHeads(masked_lm_around(encoder)) if masked else None
        losses = (SentenceOrder(), MaskedTokens(weight=0.1)) if masked else (SentenceOrder(),)
        objective = Objective(losses, widths=(32, 32), masked_lm=head)
        assert 0.3 < accuracy(encoder, objective) < 0.7
        reports: list[Any] = []
        data = MaskedBatches(pairs()) if masked else pairs()
        learn(tmp_path / str(masked), encoder, objective, data, 100, reports.append)
        assert accuracy(encoder, objective) > 0.9
        assert set(reports[0].losses) == {loss.name for loss in losses}
        assert reports[0].losses["sentence_order"] == pytest.approx(np.log(2), abs=0.2)


def test_a_stopped_run_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def run(work: Path, stop: int | None = None) -> tuple[dict[str, torch.Tensor], list[str]]:
        encoder = albert()
        model = masked_lm_around(encoder)
        losses = (SentenceOrder(), MaskedTokens())
        objective = Objective(losses, widths=(32, 32), masked_lm=MaskedLmHeads(model))
        log: list[str] = []

        def note(report: Any) -> None:
            log.append(json.dumps(report.losses))
            if report.step == stop:
                monkeypatch.setattr(signals, "requested_signal", lambda: 2)

        try:
            learn(work, encoder, objective, MaskedBatches(pairs(60)), 9, note)
        except Interrupted:
            monkeypatch.undo()
        return weights(encoder, objective), log

    whole, whole_log = run(tmp_path / "whole")
    _, first = run(tmp_path / "stopped", stop=5)  # after the first epoch, which has four batches
    again, rest = run(tmp_path / "stopped")
    assert len(first) == 5
    assert [*first, *rest] == whole_log
    assert same(whole, again)
