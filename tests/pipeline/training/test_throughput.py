"""A stage's reported arithmetic: the FLOPs that torch counts, and utilization only for a known peak."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, AutoModelForSequenceClassification

from compress.corpus.masking import SELECTED
from compress.losses.attention_mse import AttentionMse
from compress.losses.embedding_mse import EmbeddingMse
from compress.losses.hard_label import HardLabel
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.hidden_mse import HiddenMse
from compress.losses.masked_lm import MaskedTokens
from compress.losses.masked_soft_target import MaskedSoftTarget
from compress.losses.soft_target import SoftTarget
from compress.machine import BF16_PEAKS
from compress.models.dimensions import dimensions
from compress.models.masked_head import MaskedLmHeads
from compress.models.masked_lm import masked_lm_around, masked_text_loss
from compress.objective import Objective
from compress.pipeline.training import throughput
from compress.pipeline.training.log import Totals
from compress.pipeline.training.throughput import model_flops, speed

LENGTH, ROWS = 16, 4


def batch() -> dict[str, torch.Tensor]:
    ids = torch.randint(5, 100, (ROWS, LENGTH), generator=torch.Generator().manual_seed(1))
    labels = torch.full_like(ids, -100)
    labels[:, 3:6] = 7
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": ids * 0, "labels": labels}


def test_it_is_what_torch_counts_of_a_step(tiny_checkpoint: Callable[[str], Path]):
    """With eager attention, because torch does not count its fused kernel for CPUs."""
    encoder = AutoModel.from_pretrained(tiny_checkpoint("bert"), attn_implementation="eager")
    model = masked_lm_around(encoder)
    with FlopCounterMode(display=False) as counter:
        masked_text_loss(model, batch()).backward()
    sizes = dimensions(encoder.config.to_dict(), classes=2)
    expected = ROWS * model_flops(sizes, None, length=LENGTH, words=3)
    assert counter.get_total_flops() == pytest.approx(expected, rel=0.01)  # the pooler, which no loss reads


def test_a_teacher_beside_it_adds_a_forward():
    sizes = dimensions(
        {
            "model_type": "bert",
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "vocab_size": 120,
            "max_position_embeddings": 24,
        },
        classes=2,
    )
    alone, taught = model_flops(sizes, None, length=9), model_flops(sizes, sizes, length=9)
    assert taught == pytest.approx(alone * 4 / 3)
    assert alone == 3 * sizes.flops_per_example(9)


@pytest.fixture
def speed_of(tiny_checkpoint: Callable[[str], Path]) -> Callable[..., dict[str, Any]]:
    """Return a function: (objective, teacher?, GPU) -> what is reported for a run at 100 texts a second."""
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint("bert"))
    half_a_second = Totals(tokens=50 * LENGTH, examples=50, seconds=0.5)

    def say(
        objective: Any,
        *,
        teacher: bool = False,
        device: str = "cpu",
        precision: str = "no",
        totals: Totals = half_a_second,
    ) -> dict[str, Any]:
        accelerator: Any = SimpleNamespace(device=torch.device(device), mixed_precision=precision, num_processes=2)
        rates = speed(model, model if teacher else None, objective, totals, accelerator)
        return {**rates, "sizes": model.config.to_dict()}

    return say


def test_nothing_is_told_of_a_run_that_left_no_line(speed_of: Callable[..., dict[str, Any]]):
    rates = speed_of(Objective((HardLabel(),)), totals=Totals(0, 0, 0))
    assert (rates["tokens_per_second"], rates["model_flops_per_second"]) == (None, None)


def test_flops_are_a_text_s_times_the_texts_a_second(speed_of: Callable[..., dict[str, Any]]):
    objective = Objective((HardLabel(), SoftTarget()))
    rates = speed_of(objective)
    sizes = dimensions(rates["sizes"], classes=3)
    assert rates["model_flops_per_second"] == pytest.approx(100 * model_flops(sizes, None, length=LENGTH))
    assert "utilisation" not in rates
    beside = speed_of(objective, teacher=True)["model_flops_per_second"]
    assert beside == pytest.approx(4 / 3 * rates["model_flops_per_second"])
    heads = MaskedLmHeads(masked_lm_around(AutoModel.from_config(bert_config(rates["sizes"]))))
    masked = Objective((MaskedTokens(),), masked_lm=heads)
    expected = 100 * model_flops(sizes, None, length=LENGTH, words=SELECTED * LENGTH)
    assert speed_of(masked)["model_flops_per_second"] == pytest.approx(expected)


def test_a_teacher_s_masked_lm_head_counts_where_it_runs(speed_of: Callable[..., dict[str, Any]]):
    sizes = dimensions((rates := speed_of(Objective((HiddenCosine(),)), teacher=True))["sizes"], classes=3)
    heads = (masked_lm_around(AutoModel.from_config(bert_config(rates["sizes"]))) for _ in "ab")
    soft = Objective((HiddenCosine(), MaskedSoftTarget()), masked_lm=MaskedLmHeads(*heads))
    head = 2 * SELECTED * LENGTH * sizes.hidden * (sizes.hidden + sizes.vocabulary)  # of one model, forward
    more = speed_of(soft, teacher=True)["model_flops_per_second"] - rates["model_flops_per_second"]
    assert more == pytest.approx(100 * (3 + 1) * head)


def bert_config(fields: dict[str, Any]) -> Any:
    from transformers import BertConfig

    return BertConfig.from_dict(fields)


def test_where_no_layer_runs_nothing_is_said(speed_of: Callable[..., dict[str, Any]]):
    rates = speed_of(Objective((EmbeddingMse(),), widths=(32, 32)), teacher=True)
    assert rates["tokens_per_second"] == 100 * LENGTH
    assert rates["model_flops_per_second"] is None
    layers = Objective((EmbeddingMse(), HiddenMse(), AttentionMse()), layers=((1, 1),), widths=(32, 32))
    assert speed_of(layers, teacher=True)["model_flops_per_second"] > 0


@pytest.mark.parametrize(
    ("name", "precision", "known"),
    [("NVIDIA H200", "bf16", True), ("NVIDIA H200", "no", False), ("NVIDIA GeForce RTX 3090", "bf16", False)],
)
def test_a_share_is_told_of_a_gpu_whose_peak_is_known(
    speed_of: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, name: str, precision: str, known: bool
):
    monkeypatch.setattr(throughput.torch.cuda, "get_device_name", lambda device: name)
    rates = speed_of(Objective((HardLabel(),)), device="cuda", precision=precision)
    assert ("utilisation" in rates) == known
    if known:
        assert rates["utilisation"] == pytest.approx(rates["model_flops_per_second"] / 2 / BF16_PEAKS[name])
