"""Models that their tuning scores cannot rank: the recommendation says so."""

from __future__ import annotations

from collections.abc import Callable

from compress.model_choice import Limits
from compress.report.page import tasks_of
from compress.report.recommendation import recommend
from compress.results import ONE_TUNING_LABEL, Result, StageRecord


def test_a_tuning_split_of_one_label_ranks_no_models(fake: Callable[..., Result]) -> None:
    trained = StageRecord(
        kind="finetune teacher", key="1" * 64, cached=False, seconds=1.0, info={"tuning_score": 100.0}
    )
    run = fake().model_copy(update={"stages": (trained,)})
    note = f"{ONE_TUNING_LABEL}, 'good': a model that gives no other is always right"
    data = run.task.data.model_copy(update={"notes": (note,)})
    doubtful = run.model_copy(update={"task": run.task.model_copy(update={"data": data})})
    sentence = (
        "cannot be ranked: the tuning split has one label alone; name a file with other labels, too, with --tuning"
    )
    assert not any(sentence in line for line in recommend(tasks_of([run]), Limits(max_size_mb=30)).lines)
    assert sum(sentence in line for line in recommend(tasks_of([doubtful]), Limits(max_size_mb=30)).lines) == 1
