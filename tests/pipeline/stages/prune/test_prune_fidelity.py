"""How close a pruned model is to the whole one, in its record and in reports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from prune_runs import planned, request

from compress.models.checkpoints.folders import load_classifier, load_tokenizer, pad_id
from compress.models.dimensions import read_config
from compress.models.features.predict import predict_logits
from compress.pipeline import run_all
from compress.pipeline.run import build_stage
from compress.pipeline.stages.tuning_comparison import TuningComparison
from compress.report import write_report
from compress.report.text import numbers


def tuning_logits(world: Path, stage: str, *overrides: str, task: str = "task") -> tuple[np.ndarray, np.ndarray]:
    """Return the logits, float64 [example, class], and the gold labels."""
    artifact, data = (
        build_stage(request(world, "alone", *overrides, task=task), stage),
        planned(world, "alone", task=task).task,
    )
    tuning = data.encoded("tuning", load_tokenizer(artifact.path), data.spec.max_length)
    model: Any = load_classifier(artifact.path, kind=data.spec.kind, labels=data.data.labels, trained=True)
    return predict_logits(model, tuning, pad_id(read_config(artifact.path))).astype(np.float64), tuning.labels


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def test_a_point_says_how_near_its_answers_are(world: Path) -> None:
    record = build_stage(request(world, "alone"), "teacher-pruned").info
    (point,) = record["points"]
    whole, gold = tuning_logits(world, "teacher")
    bare, _ = tuning_logits(world, "teacher-pruned", "prune.repair=false")
    repaired, _ = tuning_logits(world, "teacher-pruned")
    for divergence, other in ((point["divergence"], bare), (point["repaired_divergence"], repaired)):
        of_whole, of_other = log_softmax(whole), log_softmax(other)
        kl = (np.exp(of_whole) * (of_whole - of_other)).sum(1).mean()
        assert divergence == pytest.approx(kl, rel=1e-3, abs=1e-9)
    for agreement, other in ((point["same"], bare), (point["repaired_same"], repaired)):
        assert agreement == pytest.approx((whole.argmax(1) == other.argmax(1)).mean())
    right, before = ((each.argmax(1) == gold).mean() for each in (repaired, whole))
    assert point["delta"]["points"] == pytest.approx(100 * (right - before))
    assert point["delta"]["low"] <= point["delta"]["points"] <= point["delta"]["high"]


def test_without_a_repair_the_pruned_model_is_held_against_the_whole(world: Path) -> None:
    (point,) = build_stage(request(world, "alone", "prune.repair=false"), "teacher-pruned").info["points"]
    whole, _ = tuning_logits(world, "teacher")
    bare, _ = tuning_logits(world, "teacher-pruned", "prune.repair=false")
    assert point["repaired_divergence"] is None and point["repaired_same"] is None
    assert point["same"] == pytest.approx((whole.argmax(1) == bare.argmax(1)).mean())


def test_of_a_ranking_the_queries_with_the_same_best_passage_count() -> None:
    gold = np.array([[1, 0], [0, 0], [0, 1], [1, 1], [1, 2], [0, 2]], dtype=np.float64)  # relevance, query
    whole, other = (np.array([values], dtype=np.float64).T for values in ([2, 1, 1, 2, 2, 1], [5, 1, 2, 1, 4, 3]))
    data: Any = SimpleNamespace(spec=SimpleNamespace(kind="ranking"))
    comparison = TuningComparison(data, gold, lambda model: model, whole)
    assert comparison.same(other) == pytest.approx(2 / 3) and comparison.same(whole) == 1
    assert comparison.divergence(whole) == 0 and comparison.divergence(other) == pytest.approx(
        (9 + 0 + 1 + 1 + 4 + 4) / 6
    )


@pytest.mark.slow
def test_reports_draw_what_is_left_and_the_score_at_each_budget(world: Path) -> None:
    (result,) = run_all(request(world, "plain", "prune.flops=[0.8, 0.5]"))
    (record,) = result.pruning
    write_report([result], world / "report")
    picture, page = (world / "report/pruned.svg").read_text(), (world / "report/report.md").read_text()
    last = record.points[-1]
    drawn = re.findall(r"Layer (\d+), head (\d+): (stays|taken out)", picture)
    assert len(drawn) == len(last.heads) * (record.layer_heads or 0)
    assert {(int(layer), int(head)) for layer, head, state in drawn if state == "stays"} == {
        (number, head) for number, heads in enumerate(last.heads, 1) for head in heads
    }
    assert all(f">{count:,} (" in picture if count else ">none<" in picture for count in last.neurons)
    assert "(pruned.svg)" in page and f"of {record.layer_heads} and {record.layer_neurons} in each layer" in page
    assert all(f"{point.repaired:.2f} at {point.reached:.3g}" in page for point in record.points)
    assert all(f"Tuning score, {kind}: " in picture for kind in ("pruned", "repaired"))
    assert "KL divergence from the whole model, nats" in page
    rows = [line for line in page.splitlines() if re.search(r"flops 0\.\d \| (pruned|repaired) \|", line)]
    assert len(rows) == 4 and all("%" in row for row in rows)
    for point, row in zip(record.points, rows[1::2], strict=True):
        assert point.delta is not None and f"| {numbers.signed(point.delta.points)} (" in row
    assert "<svg" in (world / "report/report.html").read_text().split("What pruning left")[1]


@pytest.mark.slow
def test_a_report_without_pruning_has_no_such_picture(world: Path) -> None:
    (pruned,) = run_all(request(world, "plain"))
    write_report([pruned], world / "report")
    assert (world / "report/pruned.svg").exists()
    (result,) = run_all(request(world, "plain", "prune.enabled=false"))
    write_report([result], world / "report")
    assert not (world / "report/pruned.svg").exists()
    assert "What pruning left" not in (world / "report/report.md").read_text()
    assert json.loads((world / "report/result.json").read_text())["pruning"] == []
