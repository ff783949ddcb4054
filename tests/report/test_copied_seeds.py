"""Seeds of stages without randomness make the same model again: they are no repetitions and narrow no interval."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compress.report.page import tasks_of
from compress.results import Result


def test_seeds_that_made_the_same_model_count_once(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path
) -> None:
    first, second = (run_directory(fake(seed=seed)) for seed in (0, 1))
    copied = second.model_copy(update={"stages": first.stages})
    alone, copies, apart = (
        [row.delta for row in tasks_of(results, [tmp_path / "runs"])[0].rows if row.delta]
        for results in ([first], [first, copied], [first, second])
    )
    assert copies == alone and len(alone) > 1
    assert all(one != other for one, other in zip(apart, alone, strict=True))
