"""When `compress reproduce` must not expect equal figures: trainings under other conditions, and stages that depend on measured times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compress.pipeline import Request, plan_all
from compress.pipeline.results.resolved import student_card
from compress.reproduction.conditions import (
    DECIDED_BY_TIMES,
    are_exact,
    conditions_of,
    is_sized_by_times,
    timed_stages,
)
from compress.reproduction.reruns import _changed_models
from compress.reproduction.verdicts import _figures, _Pair
from compress.results import Result, read_results

REPORTS = Path(__file__).parents[2] / "reports"


@pytest.fixture(scope="module")
def recorded() -> Result:
    """Return a result from a CPU only, with all stages by the same code."""
    (*_, result) = read_results(REPORTS / "vocabulary" / "results.json")
    stages = tuple(stage.model_copy(update={"code": result.code}) for stage in result.stages)
    models = tuple(model.model_copy(update={"code": result.code}) for model in result.models)
    machine = result.machine.model_copy(update={"gpu": None})
    return result.model_copy(update={"stages": stages, "models": models, "machine": machine})


def resumed(result: Result, *parts: Any) -> Result:
    (stage,) = (each for each in result.stages if "steps" in each.info)
    trained = stage.model_copy(update={"info": stage.info | {"threads": 1, "device": "cpu", "earlier_parts": [*parts]}})
    return result.model_copy(update={"stages": tuple(trained if each is stage else each for each in result.stages)})


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, []),
        ({"threads": 7}, ["threads"]),
        ({"processes": 2}, ["processes"]),
        ({"device": "cuda"}, ["training device"]),
        ({"code": None}, ["code"]),
    ],
)
def test_an_earlier_part_that_was_trained_otherwise_is_no_exact_record(
    recorded: Result, change: dict[str, Any], wrong: list[str]
) -> None:
    assert recorded.code is not None
    part = {"threads": 1, "processes": 1, "device": "cpu", "code": recorded.code.model_dump(mode="json")} | change
    result = resumed(recorded, part)
    conditions = conditions_of(result, recorded)
    assert [each.name for each in conditions if not each.same] == wrong
    assert are_exact(conditions) == (not wrong)


def test_an_earlier_part_that_is_not_known_is_no_exact_record(recorded: Result) -> None:
    conditions = conditions_of(resumed(recorded, {}), recorded)
    wrong = {each.name: each.recorded for each in conditions if not each.same}
    assert wrong["threads"] == "1 or not recorded by stage"
    assert wrong.keys() == {"threads", "processes", "training device", "code"}


def with_stages(result: Result, *stages: dict[str, Any]) -> Result:
    return result.model_copy(update={"recipe": {**result.recipe, "stages": [*stages]}})


@pytest.mark.parametrize(
    ("stages", "timed"),
    [
        ([{"quantize": {"method": "smoothquant"}}], None),
        ([{"quantize": {"method": "auto"}}], "quantize"),
        ([{"quantize": {"method": "inc-static"}}], None),
        ([{"quantize": {"method": "of a later version"}}], None),
        ([{"quantize": {}}, {"prune": {"flops": 0.5}}], None),
        ([{"prune": {"latency": 0.5}}], "prune"),
        ([{"prune": {"latency": [0.5, 0.3]}}, {"quantize": {"method": "auto"}}], "prune, quantize"),
        ([{"prune": {"latency": 0.5, "enabled": False}}, {"export": None}], None),
        ([{"prune": {"latency": 0.5, "name": "narrow"}}], "narrow"),
    ],
)
def test_stages_that_go_by_times_are_named(recorded: Result, stages: list[dict[str, Any]], timed: str | None) -> None:
    result = with_stages(recorded, *stages)
    conditions = conditions_of(result, result)
    wrong = {each.name: each.recorded for each in conditions if not each.same}
    assert wrong == ({} if timed is None else {DECIDED_BY_TIMES: timed})
    assert are_exact(conditions)  # only models that depend on times are not; see below
    assert ", ".join(label for _, label in timed_stages(result)) == (timed or "")


def test_their_models_are_not_held_to_a_size(recorded: Result) -> None:
    model = recorded.models[0].model_copy(update={"name": "teacher", "precision": "fp32"})
    named = {
        f"{name}-{precision}": model.model_copy(update={"name": name, "precision": precision})
        for name in ("teacher", "teacher-pruned")
        for precision in ("fp32", "int8", "qdq")
    }

    def sized(*stages: dict[str, Any]) -> list[str]:
        result = with_stages(recorded, *stages)
        return [label for label, each in named.items() if is_sized_by_times(result, each)]

    assert sized({"quantize": {"method": "smoothquant"}}) == []
    assert sized({"quantize": {"method": "auto"}}) == ["teacher-int8", "teacher-pruned-int8"]
    assert sized({"prune": {"latency": 0.5}}) == ["teacher-pruned-fp32", "teacher-pruned-int8", "teacher-pruned-qdq"]


@pytest.mark.parametrize(
    ("method", "factor", "verdict", "why"),
    [
        ("auto", 2, "not judged", DECIDED_BY_TIMES),
        ("auto", 1.005, "within 1%", ""),
        ("auto", 1, "same", ""),
        ("smoothquant", 2, "differs", ""),
    ],
)
def test_such_a_size_is_not_judged(recorded: Result, method: str, factor: float, verdict: str, why: str) -> None:
    result = with_stages(recorded, {"quantize": {"method": method}})
    size = round(factor * result.final.file_bytes)
    models = (*result.models[:-1], result.final.model_copy(update={"file_bytes": size}))
    pair = _Pair(result, result.model_copy(update={"models": models}), None, Path())
    (figure,) = (each for each in _figures(pair, result.final, exact=False) if each.name == "file_bytes")
    assert result.final.precision == "int8"
    assert (figure.verdict, figure.why) == (verdict, why)


def test_fields_of_a_students_card_that_have_changed_are_noted(recorded: Result) -> None:
    (plan,) = plan_all(Request(("distilbert",), ("toy-sentiment",), teacher="bert-mini"))
    card = student_card(plan)
    assert card is not None and card["copy_layers"] == "every_other"

    def changed(**fields: Any) -> list[str]:
        then = recorded.model_copy(update={"student_card": {**card, **fields}, "models": ()})
        return [*_changed_models(then, plan)]

    assert changed() == []
    assert changed(copy_layers=[0, 3], init="prune") == [
        "copy_layers of the student's card: [0, 3] on record, every_other now",
        "init of the student's card: prune on record, nothing now",
    ]
    assert [*_changed_models(recorded.model_copy(update={"models": ()}), plan)] == []  # not on record
