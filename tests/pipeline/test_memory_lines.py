"""What a plan, and a run before it trains, says about memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from estimated import gpu_of, request_of
from listeners import Notices
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.cli.plan_totals import crowded_memory
from compress.cli.plans import plan_documents
from compress.pipeline import plan_all, run_all
from compress.pipeline.estimate import estimate

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n" * 90)
    return tmp_path


def test_what_does_not_fit_into_memory_says_what_to_lower(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_of(monkeypatch, None)
    monkeypatch.setattr("compress.pipeline.estimate.memory_bytes", lambda: 1000)
    line = estimate(plan_all(request_of(world)), world / "runs").memory_line()
    assert line is not None and line.endswith(": not enough; lower micro_batch_size of finetune, or max_length")


def test_a_stage_is_called_as_settings_call_it(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distillations of a TinyBERT have their own names, `intermediate` and `prediction`."""
    gpu_of(monkeypatch, None)
    monkeypatch.setattr("compress.pipeline.estimate.memory_bytes", lambda: 1000)
    (world / "one.yaml").write_text("{name: one, title: S, architecture: bert, layers: 1}")
    request = request_of(world, "general.enabled=false", "augment.enabled=false", recipe="tinybert")
    forecast = estimate(plan_all(replace(request, student=str(world / "one.yaml"))), request.root)
    named = [work for work in forecast.work if work.label == "distill intermediate"]
    line = replace(forecast, work=tuple(named)).memory_line()
    assert line is not None and line.endswith(": not enough; lower micro_batch_size of intermediate, or max_length")


def test_a_micro_batch_is_what_is_in_memory(world: Path) -> None:
    whole, small = (
        estimate(plan_all(request_of(world, *words)), world / "runs").work[0].memory
        for words in ((), ("finetune.micro_batch_size=8",))
    )
    assert (whole.examples, small.examples) == (32, 8)
    assert small.activations * 4 == pytest.approx(whole.activations, abs=4)  # rounded
    assert small.weights == whole.weights


@pytest.mark.parametrize("jobs", [1, 2])
def test_stages_side_by_side_need_the_memory_of_each(world: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    gpu_of(monkeypatch, None)
    request = replace(request_of(world), seeds=(0, 1), jobs=jobs)
    forecast = estimate(plan_all(request), request.root)
    one, other = (work.memory.total for work in forecast.work)
    monkeypatch.setattr("compress.pipeline.estimate.memory_bytes", lambda: one + other - 1)
    assert forecast.fits(1) and not forecast.fits(2)
    line = forecast.memory_line(2)
    assert line is not None and line.endswith(": not enough for these at once; lower --jobs")
    plans = plan_all(request)
    documents = plan_documents(plans, request.root)
    assert crowded_memory(plans, documents, request.root, jobs) == (line if jobs == 2 else None)
    assert crowded_memory(plans, [documents[0], {**documents[1], "data": None}], request.root, jobs) is None
    heard = Notices()
    run_all(request, heard)
    assert (line in heard.notices) is (jobs == 2)
    assert estimate(plan_all(request), request.root).fits(2)  # nothing is left to train


def test_stages_that_follow_each_other_do_not_come_together(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_of(monkeypatch, None)
    (world / "one.yaml").write_text("{name: one, title: S, architecture: distilbert, layers: 1}")
    request = replace(request_of(world, recipe="distilbert"), student=str(world / "one.yaml"))
    forecast = estimate(plan_all(request), request.root)
    totals = [work.memory.total for work in forecast.work]
    assert len(totals) == 2
    monkeypatch.setattr("compress.pipeline.estimate.memory_bytes", lambda: max(totals))
    assert forecast.fits(8)
    assert "at once" not in str(forecast.memory_line(8))
