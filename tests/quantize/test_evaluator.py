"""What a candidate loses when its outputs are not all logits, as with answer positions and confidences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from compress.quantize.evaluator import Evaluator
from compress.tasks import TASK_KINDS

FP32 = np.array([[0, 4, 2.0, 1.0], [10, 12, 3.0, 0.5], [5, 9, 1.0, 0.0], [0, 0, -1.0, 0.25]], np.float32)
INT8 = np.array([[0, 4, 2.5, 1.0], [90, 99, 3.0, 0.0], [5, 9, 1.0, 0.0], [0, 0, -1.0, 0.25]], np.float32)


def test_answers_flip_as_a_whole_and_only_logits_are_compared_as_numbers(tmp_path: Path) -> None:
    kind = replace(
        TASK_KINDS["classification"],
        answers=lambda outputs: outputs[:, :2].astype(np.int64),
        logits=lambda outputs: outputs[:, 2:4],
    )
    score = lambda outputs: 100.0 if outputs is FP32 else 75.0  # noqa: E731
    losses = Evaluator(
        few=lambda path: FP32,
        all=lambda path: FP32,
        score_few=score,
        score=score,
        texts={"tuning": 4},
        times=lambda path: {},
        feeds=(),
        kind=kind,
        folder=tmp_path,
    ).losses_against(FP32, INT8)
    assert (losses["drop"], losses["flipped"], losses["flips"]) == (25.0, 1, 25.0)
    assert losses["mean_logit_difference"] == 0.125  # two of eight logits differ by a half


def test_of_other_kinds_all_outputs_are_logits() -> None:
    for name in ("classification", "multilabel", "tagging", "regression"):
        assert TASK_KINDS[name].logits(FP32) is FP32
