"""How far a quantized model's outputs may be from the record, relative to the spread of the outputs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from compress.bundle.tolerance import compare_with_record, distance, limit_of
from compress.bundle.verifying.answers import _agreement
from compress.errors import CheckFailed

SCORES = np.linspace(0.0149, 0.0214, 16)[:, None]


def info_of(kind: str, fp32: np.ndarray, int8: np.ndarray) -> Any:
    probe = SimpleNamespace(
        texts=[[f"text {row}"] for row in range(len(fp32))], logits={"fp32": fp32.tolist(), "int8": int8.tolist()}
    )
    labels = ("score",) if fp32.shape[1] == 1 else ("no", "yes")
    return SimpleNamespace(task=SimpleNamespace(kind=kind), probe=probe, labels=labels, models=("fp32", "int8"))


@pytest.mark.parametrize("kind", ["ranking", "regression"])
def test_a_model_of_small_outputs_must_still_give_them(kind: str) -> None:
    info = info_of(kind, SCORES, SCORES + 1e-4)
    near = SCORES + 1e-4 + 3e-4 * np.cos(np.arange(16))[:, None]
    assert distance(info, "int8", near, SCORES + 1e-4)[1]
    for wrong in (np.zeros_like(SCORES), np.full_like(SCORES, SCORES.mean()), SCORES[::-1]):
        with pytest.raises(CheckFailed, match="this CPU does not compute what"):
            compare_with_record(info, "int8", wrong)


def test_what_quantization_changed_itself_is_allowed_three_times() -> None:
    info = info_of("ranking", SCORES, SCORES + 0.01)
    assert limit_of(info, "int8") == pytest.approx(0.03)


def test_without_fp32_the_largest_output_counts() -> None:
    info = info_of("ranking", SCORES, SCORES)
    info.models = ("int8",)
    assert limit_of(info, "int8") == 0.25


def test_what_step_6_allows_is_allowed_beside_fp32_too() -> None:
    """This CPU's model differs from its record by the maximum, away from fp32."""
    fp32, int8 = SCORES, SCORES + 0.01
    info = info_of("regression", fp32, int8)
    here = int8 + 0.9 * limit_of(info, "int8")
    assert distance(info, "int8", here, int8)[1]
    assert _agreement(info, {"fp32": fp32, "int8": here}, "int8")
    with pytest.raises(CheckFailed):
        _agreement(info, {"fp32": fp32, "int8": here + 0.01}, "int8")


def test_of_classes_the_column_that_lies_farthest_apart_counts() -> None:
    logits = np.column_stack([np.linspace(-0.2, 0.2, 16), np.linspace(0.1, -0.1, 16)])
    assert limit_of(info_of("classification", logits, logits), "int8") == pytest.approx(0.25 * 0.4)
    assert limit_of(info_of("classification", 10 * logits, 10 * logits), "int8") == pytest.approx(0.25 * 2)
    same = np.full((16, 2), 0.4)  # no spread: a quarter of the outputs
    assert limit_of(info_of("classification", same, same), "int8") == pytest.approx(0.1)


def test_of_fp32_no_label_may_change() -> None:
    logits = np.tile([[1e-4, 0.0], [0.0, 2.0]], (8, 1))
    info, other = info_of("classification", logits, logits), logits.copy()
    other[0] = other[0, ::-1]
    assert distance(info, "int8", other, logits)[1]
    detail, near = distance(info, "fp32", other, logits)
    assert "labels changed 1 of 16" in detail and not near
