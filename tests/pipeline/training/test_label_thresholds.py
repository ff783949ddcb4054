"""What a training records about label thresholds, and the output biases that they shift."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from compress.pipeline.training import thresholds

LABELS = ("rare", "usual", "common")


class Tuning(list[int]):
    labels = np.zeros((1200, 3), np.uint8)


def chosen(monkeypatch: pytest.MonkeyPatch, logits: Any) -> tuple[Any, list[str], torch.Tensor]:
    """Return what is recorded, the notices, and the biases, which started at 1."""
    notices: list[str] = []
    spec = SimpleNamespace(kind="multilabel", max_length=8)
    task = SimpleNamespace(data=SimpleNamespace(spec=spec, labels=LABELS), encoded=lambda *_: Tuning(range(1200)))
    model = SimpleNamespace(
        classifier=torch.nn.Linear(2, 3), config=SimpleNamespace(to_dict=lambda: {"pad_token_id": 0})
    )
    torch.nn.init.ones_(model.classifier.bias)
    monkeypatch.setattr(thresholds, "collected_logits", lambda *_: None)
    monkeypatch.setattr(thresholds, "best_threshold", lambda *_: logits)
    context: Any = SimpleNamespace(task=task, notice=notices.append)
    info = thresholds.choose_threshold(model, None, context, stage="student")
    return info, notices, model.classifier.bias.detach()


def test_each_label_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    info, notices, biases = chosen(monkeypatch, np.log([1 / 9, 1.0, 3 / 2]))
    assert list(info) == ["thresholds"]
    assert info["thresholds"] == pytest.approx({"rare": 0.1, "usual": 0.5, "common": 0.6})
    torch.testing.assert_close(biases, torch.tensor([1 + np.log(9), 1.0, 1 - np.log(1.5)]).float())
    assert notices == [
        "student: each label has its own best threshold, a probability of 0.10 (rare) to 0.60 (common), by 1,200 tuning texts; "
        "the model's outputs are shifted so that it becomes one half"
    ]


def test_all_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    info, notices, biases = chosen(monkeypatch, np.full(3, np.log(1 / 9)))
    assert info == {"threshold": pytest.approx(0.1)}
    torch.testing.assert_close(biases, torch.full((3,), float(1 + np.log(9))))
    assert notices == [
        "student: the best threshold for labels is a probability of 0.10, by 1,200 tuning texts; the model's outputs are shifted "
        "so that it becomes one half"
    ]
