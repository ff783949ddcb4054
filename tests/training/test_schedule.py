"""The learning rate against values computed by hand."""

from __future__ import annotations

import pytest

from compress.spec.stages import Training
from compress.training.schedule import learning_rate, total_steps


def rates(total: int, **fields: object) -> list[float]:
    settings = Training.model_validate({"learning_rate": 1.0, **fields})
    return [learning_rate(settings, step, total) for step in range(total)]


@pytest.mark.parametrize(
    ("schedule", "decay"),
    [
        ("linear", [8 / 8, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("cosine", [1.0, 0.961940, 0.853553, 0.691342, 0.5, 0.308658, 0.146447, 0.038060]),
        ("constant", [1.0] * 8),
    ],
)
def test_warm_up_then_the_schedule(schedule: str, decay: list[float]):
    assert rates(10, warmup=0.2, schedule=schedule) == pytest.approx([1 / 3, 2 / 3, *decay], abs=1e-6)


def test_without_warm_up_the_first_step_is_at_the_peak():
    assert rates(4, warmup=0.0) == [1.0, 0.75, 0.5, 0.25]
    assert rates(1, warmup=0.0) == [1.0]


def test_no_step_has_a_rate_of_zero():
    for total in range(1, 40):
        for warmup in (0.0, 0.06, 0.5, 0.99):
            for schedule in ("linear", "cosine", "constant"):
                assert min(rates(total, warmup=warmup, schedule=schedule)) > 0


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"epochs": 3}, 12), ({"epochs": 2.5}, 10), ({"epochs": 0.01}, 1), ({"epochs": 3, "max_steps": 7}, 7),
     ({"epochs": 1, "max_steps": 7}, 4)],
)  # fmt: skip
def test_total_steps_of_four_batches_an_epoch(fields: dict[str, float], expected: int):
    assert total_steps(Training.model_validate(fields), 4) == expected
