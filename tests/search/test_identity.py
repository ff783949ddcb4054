"""What identifies a search, and the requests of its trials."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from listeners import Notices
from recipe_runs import TASK, TEACHER

from compress.errors import CompressError
from compress.files.paths import display_path
from compress.model_choice import Limits, Measured, choose
from compress.pipeline import Request
from compress.results import ONE_TUNING_LABEL
from compress.search import run as search_run
from compress.search.identity import IDENTITY
from compress.search.report import search_document, write_search
from compress.search.run import command_of, open_search
from compress.search.space import Axis
from compress.search.study import Trial

CATALOGUE = Path(__file__).parents[2]
LIMITS = Limits(max_size_mb=5)


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    (tmp_path / "tiny.yaml").write_text(TEACHER)
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "text.txt").write_text("the film is good .\n" * 20)
    (tmp_path / "tuning.csv").write_text("sentence,label\nthe film is good .,positive\nthe film is bad .,negative\n")
    return Request(
        ("vocabulary-int8", "distilbert"),
        (str(tmp_path / "task.yaml"),),
        teacher=str(tmp_path / "tiny.yaml"),
        root=tmp_path / "out",
        corpus=(str(tmp_path / "text.txt"),),
        precision="fp32",
        overrides=("distill.epochs=1",),
    )


def test_an_override_is_for_the_recipes_that_have_its_stage(request_: Request) -> None:
    open_search(request_, LIMITS, ())
    commands = [command_of(request_, {"recipe": recipe}, LIMITS) for recipe in ("vocabulary-int8", "distilbert")]
    assert ["distill.epochs=1" in command for command in commands] == [False, True]


def test_what_a_run_notes_on_the_data_is_heard_before_the_trials(request_: Request, tmp_path: Path) -> None:
    """As where no trial can be better than another on the tuning split."""
    (tmp_path / "one.csv").write_text("sentence,label\nthe film is good .,positive\nthe film is fine .,positive\n")
    heard = Notices()
    open_search(replace(request_, tuning=tmp_path / "one.csv"), LIMITS, (), heard)
    assert [note for note in heard.notices if note.startswith(f"{ONE_TUNING_LABEL}, 'positive'")]


def test_texts_that_are_cut_are_noted_before_the_trials(request_: Request, tmp_path: Path) -> None:
    """As by a run: once, whichever recipes are tried."""
    (tmp_path / "task.yaml").write_text(TASK.replace("max_length: 24", "max_length: 4"))
    heard = Notices()
    open_search(request_, LIMITS, (), heard)
    assert len([note for note in heard.notices if "have more than 4 tokens and are cut" in note]) == 1


@pytest.mark.parametrize(("limits", "timed"), [(Limits(max_latency_ms=5.0), True), (Limits(max_size_mb=5.0), False)])
def test_a_command_goes_on_with_what_the_search_has_and_times_what_its_limits_ask_for(
    request_: Request, limits: Limits, timed: bool
) -> None:
    command = command_of(request_, {"recipe": "distilbert"}, limits)
    assert command.endswith(f" --out {display_path(str(request_.root))}")
    assert ("--no-bench" in command) != timed


def test_the_same_request_goes_on_whatever_its_threads(request_: Request) -> None:
    open_search(request_, LIMITS, ())
    open_search(replace(request_, threads=3), LIMITS, ())


@pytest.mark.parametrize(
    ("named", "change"),
    [
        ("precision", {"precision": "bf16"}),
        ("set", {"overrides": ()}),
        ("seed", {"seeds": (1,)}),
        ("refit", {"refit": True}),
    ],
)
def test_another_setting_is_another_search(request_: Request, named: str, change: dict[str, Any]) -> None:
    open_search(request_, LIMITS, ())
    with pytest.raises(CompressError, match=f"holds another search: {named} is"):
        open_search(replace(request_, **change), LIMITS, ())


def test_other_text_tuning_limits_and_values_are_another_search(request_: Request, tmp_path: Path) -> None:
    open_search(request_, LIMITS, ())
    with pytest.raises(CompressError, match="holds another search: data is"):
        open_search(replace(request_, tuning=tmp_path / "tuning.csv"), LIMITS, ())
    with pytest.raises(CompressError, match="holds another search: limits is"):
        open_search(request_, Limits(max_size_mb=6), ())
    with pytest.raises(CompressError, match="holds another search: --try is"):
        open_search(request_, LIMITS, (Axis("distill.batch_size", (8, 16)),))
    (tmp_path / "text.txt").write_text("the film is bad .\n" * 20)
    with pytest.raises(CompressError, match="holds another search: corpus is"):
        open_search(request_, LIMITS, ())


def test_files_that_changed_since_are_another_search(request_: Request, tmp_path: Path) -> None:
    own, student = tmp_path / "own.yaml", tmp_path / "small.yaml"
    own.write_text((CATALOGUE / "recipes" / "distilbert.yaml").read_text().replace("name: distilbert", "name: own"))
    student.write_text(
        (CATALOGUE / "students" / "distil-1l.yaml").read_text().replace("name: distil-1l", "name: small")
    )
    request_ = replace(request_, recipes=("int8", str(own)), corpus=())
    axes = (Axis("student", (str(student),)),)
    open_search(request_, LIMITS, axes)
    open_search(request_, LIMITS, axes)
    for path, old, new, changed in (
        (own, "temperature: 2.0", "temperature: 3.0", f"{own} {student}"),
        (student, "layers: 1", "layers: 2", f"{own} {student}"),
        (tmp_path / "tiny.yaml", "hidden: 32", "hidden: 64", f"{own} {student}, int8"),
    ):
        kept = path.read_text()
        assert old in kept
        path.write_text(kept.replace(old, new))
        with pytest.raises(CompressError, match=f"has changed since, for {re.escape(changed)};"):
            open_search(request_, LIMITS, axes)
        path.write_text(kept)
    open_search(request_, LIMITS, axes)


@pytest.mark.parametrize("text", ["null", "[]", "{"])
def test_an_identity_that_cannot_be_read_is_named(request_: Request, text: str) -> None:
    open_search(request_, LIMITS, ())
    path = request_.root / "search" / IDENTITY
    path.write_text(text)
    with pytest.raises(CompressError, match=IDENTITY):
        open_search(request_, LIMITS, ())


def test_a_search_of_an_earlier_version_is_said_to_be_one(request_: Request) -> None:
    open_search(request_, LIMITS, ())
    path = request_.root / "search" / IDENTITY
    document = json.loads(path.read_text())
    del document["files"]
    path.write_text(json.dumps(document))
    with pytest.raises(CompressError, match="begun by an earlier version of compress"):
        open_search(request_, LIMITS, ())


def test_a_machine_with_another_cpu_takes_part(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although stages that depend on its own timings have other keys in the store."""
    request_ = replace(request_, recipes=("int8",), corpus=(), overrides=("quantize.method=auto",))
    open_search(request_, LIMITS, ())
    monkeypatch.setattr("compress.pipeline.stages.quantize.cpu_name", lambda: "another")
    monkeypatch.setattr("compress.pipeline.stages.quantize.isa", lambda: ("avx2",))
    open_search(request_, LIMITS, ())


def test_a_trial_that_repeats_another_is_no_model_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    point, info = {"recipe": "int8"}, {"score": 90.0, "size_mb": 1.0, "latency_ms": None}
    trials = [Trial(0, point, (-90.0, 1.0), None, info), Trial(1, point, (-90.0, 1.0), None, info, 0)]
    monkeypatch.setattr(search_run, "open_search", lambda *words: SimpleNamespace(run=lambda most, work: trials))
    monkeypatch.setattr(search_run, "run_all", lambda request, listener: [request.recipes])
    request = Request(("int8",), ("toy-sentiment",), teacher="bert-mini")
    result = search_run.search(request, LIMITS, (), 2)
    assert [model.number for model in result.front] == [trial.number for trial in result.trials] == [0]


def test_no_command_ships_a_choice_that_misses_a_limit(tmp_path: Path) -> None:
    """The page contains no such command either."""
    model = Measured(0, score=90.0, size_mb=9.0, latency_ms=None)
    trial = Trial(0, {"recipe": "int8"}, (-90.0, 9.0), None, {"score": 90.0, "size_mb": 9.0, "latency_ms": None})
    run: Any = SimpleNamespace(run="int8-1", final=SimpleNamespace(headline=88.0))
    result = search_run.SearchResult([trial], [model], choose([model], LIMITS), {0: run})
    document = search_document(result, Request(("int8",), ("toy-sentiment",), teacher="bert-mini"), LIMITS)
    assert document["choice"]["missed"] and document["ship"] is None
    (tmp_path / "search").mkdir()
    pages = [path.read_text() for path in write_search(document, tmp_path)]
    assert "--max-size-mb" in pages[1] and not any("compress ship" in page for page in pages)
