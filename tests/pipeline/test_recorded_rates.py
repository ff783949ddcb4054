"""Which trainings in the store tell how long the next ones take."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compress.pipeline import Request, plan_all
from compress.pipeline.estimate import estimate
from compress.store import Store
from compress.store.manifest import NAME

NEWEST = 2_000_000_000  # seconds


def record(root: Path, number: int, rate: float | None, precision: str = "fp32") -> None:
    """Add an artefact of a model as large as `bert-mini`, the older the larger its `number`."""
    folder = Store(root / ".store").path(f"{number:032x}")
    folder.mkdir(parents=True)
    info = {} if rate is None else {"model_flops_per_second": rate, "precision": precision, "device": "cpu"}
    (folder / NAME).write_text(json.dumps({"info": info, "files": {"model.safetensors": {"bytes": 4_300_000}}}))
    os.utime(folder / NAME, (NEWEST - number, NEWEST - number))


def request(root: Path, recipe: str, precision: str) -> Request:
    return Request((recipe,), ("toy-sentiment",), teacher="bert-mini", root=root, precision=precision, bench=None)


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compress.pipeline.estimate.training_gpu", lambda: None)


def test_artefacts_that_are_no_trainings_hide_none(tmp_path: Path) -> None:
    """As after a search of quantization settings."""
    for number in range(60):
        record(tmp_path, number, None)
    record(tmp_path, 60, 3e9)
    outlook = estimate(plan_all(request(tmp_path, "int8", "fp32")), tmp_path)
    assert outlook.seconds == pytest.approx(sum(work.flops for work in outlook.work) / 3e9)


def test_each_stage_is_judged_by_trainings_in_its_own_precision(tmp_path: Path) -> None:
    record(tmp_path, 0, 8e9, "bf16")
    record(tmp_path, 1, 2e9, "fp32")
    outlook = estimate(plan_all(request(tmp_path, "distilbert-int8-qat", "bf16")), tmp_path)
    assert {work.stage: outlook.rates[work.key] for work in outlook.work} == {
        "finetune": 8e9,
        "distill": 8e9,
        "quantize_aware": 2e9,  # trains in fp32, whatever the run's precision
    }
    plans = [plan_all(request(tmp_path, "int8", precision))[0] for precision in ("bf16", "fp32")]
    outlook = estimate(plans, tmp_path)
    assert [outlook.rates[work.key] for work in outlook.work] == [8e9, 2e9]


def test_many_trainings_in_one_precision_hide_none_in_another(tmp_path: Path) -> None:
    for number in range(55):
        record(tmp_path, number, 8e9, "bf16")
    record(tmp_path, 60, 2e9, "fp32")
    outlook = estimate(plan_all(request(tmp_path, "int8", "fp32")), tmp_path)
    assert set(outlook.rates.values()) == {2e9}


@pytest.mark.parametrize(("size", "rate"), [(4_300_000, "x"), (0, 3e9), (4_300_000, -1.0), (None, 3e9)])
def test_a_damaged_record_tells_nothing(tmp_path: Path, size: object, rate: object) -> None:
    record(tmp_path, 0, 3e9)
    (manifest,) = (tmp_path / ".store").glob(f"*/{NAME}")
    document = json.loads(manifest.read_text())
    document["info"]["model_flops_per_second"], document["files"]["model.safetensors"]["bytes"] = rate, size
    manifest.write_text(json.dumps(document))
    assert not estimate(plan_all(request(tmp_path, "int8", "fp32")), tmp_path).rates
