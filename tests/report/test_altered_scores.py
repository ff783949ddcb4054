"""Scores on the tuning split, used for recommendations: valid ones are read, an altered one is refused with its field's name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compress.errors import CompressError
from compress.report import collect
from compress.report.page import tasks_of
from compress.report.recommendation import tuning_score
from compress.results import RESULT, Result, write_result

SCORES = {"fp32_tuning_score": 80.5, "int8_tuning_score": 80, "flips": 3}


def altered(result: Result, folder: Path, part: str, number: int, info: dict[str, Any]) -> Path:
    """Set `info` of the stage or model with this number in the result."""
    document = json.loads(write_result(result, folder).read_text())
    document[part][number]["info"] = info
    (folder / RESULT).write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("score", ["high", True, [80.0], {}, 101, -100.5])
@pytest.mark.parametrize("name", ["fp32_tuning_score", "int8_tuning_score"])
def test_a_fidelity_without_two_scores_is_named(
    fake: Callable[..., Result], tmp_path: Path, name: str, score: object
) -> None:
    for fidelity in ({**SCORES, name: score}, {key: value for key, value in SCORES.items() if key != name}):
        folder = altered(fake(), tmp_path, "models", 2, {"fidelity": fidelity})
        with pytest.raises(CompressError) as caught:
            collect([folder])
        assert str(caught.value) == (
            f"{folder / RESULT}: not a result of schema 1: models.2.info: `{name}`: expected points, a number from -100 to 100"
        )


@pytest.mark.parametrize("fidelity", ["high", [80.0], 3])
def test_a_fidelity_that_is_no_mapping_is_named(fake: Callable[..., Result], tmp_path: Path, fidelity: object) -> None:
    folder = altered(fake(), tmp_path, "models", 2, {"fidelity": fidelity})
    with pytest.raises(CompressError, match=r"result\.json: .*: models\.2\.info: `fidelity`: expected a mapping"):
        collect([folder])


@pytest.mark.parametrize("score", ["high", False, [80.0], {}, 101, -100.5])
def test_a_score_of_a_training_that_is_none_is_named(
    fake: Callable[..., Result], tmp_path: Path, score: object
) -> None:
    folder = altered(fake(), tmp_path, "stages", 0, {"steps": 9, "tuning_score": score})
    with pytest.raises(CompressError, match=r"result\.json: .*: stages\.0\.info: `tuning_score`: expected points"):
        collect([folder])


@pytest.mark.parametrize(
    ("name", "value"),
    [("layer_mix", 3), ("layer_mix", []), ("layer_mix", ["a"]), ("thresholds", [1]), ("thresholds", {"a": "b"})],
)
def test_a_mix_and_thresholds_of_no_numbers_are_named(
    fake: Callable[..., Result], tmp_path: Path, name: str, value: object
) -> None:
    folder = altered(fake(), tmp_path, "stages", 0, {"steps": 9, name: value})
    with pytest.raises(CompressError, match=rf"result\.json: .*: stages\.0\.info: `{name}`: expected "):
        collect([folder])


@pytest.mark.parametrize("fidelity", [{"fidelity": SCORES}, {"fidelity": None}, {}])
@pytest.mark.parametrize("score", [{"tuning_score": 81.5}, {"tuning_score": 81}, {"tuning_score": None}, {}])
def test_scores_that_are_there_or_absent_are_read(
    fake: Callable[..., Result], tmp_path: Path, fidelity: dict[str, Any], score: dict[str, Any]
) -> None:
    altered(fake(), tmp_path, "models", 2, fidelity)
    (result,) = collect([tmp_path])
    info = {"steps": 9, **score, "precision": "fp32"}
    (result,) = collect([altered(result, tmp_path, "stages", 0, info)])
    assert list(result.stages[0].info.items()) == list(info.items())  # a page lists them in this order
    student = result.models[1:]
    expected = (80.5, 80) if fidelity.get("fidelity") else (None, None)
    assert tuple(tuning_score(result, model) for model in student) == expected
    assert tasks_of([result])
