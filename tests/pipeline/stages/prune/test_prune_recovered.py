"""Distillation after pruning."""

from __future__ import annotations

from pathlib import Path

import pytest
from prune_runs import RECOVERED, planned, request

from compress.bundle import ship
from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import dimensions, read_config
from compress.pipeline import run_all
from compress.pipeline.run import build_stage
from compress.report import write_report

pytestmark = pytest.mark.end_to_end


@pytest.mark.slow
def test_a_pruned_teacher_that_is_recovered_is_the_student(world: Path) -> None:
    plan = planned(world, "recovered")
    assert plan.models == ("teacher-fp32", "student-fp32", "student-int8")
    nodes = {node.id: node for node in plan.nodes}
    assert nodes["student"].inputs == {"teacher": "teacher", "student": "teacher-pruned"}
    assert planned(world, "recovered", "distill.enabled=false").models[1] == "teacher-pruned-fp32"
    (result,) = run_all(request(world, "recovered"))
    (record,), log = result.pruning, next(stage for stage in result.stages if stage.kind == "distill student")
    assert record.recovered == log.info["tuning_score"]
    assert result.final.name == record.model == "student" and "heads" in result.final.architecture
    assert result.final.parameters < result.models[0].parameters
    write_report([result], world / "report")
    page = (world / "report/report.md").read_text()
    assert "the teacher, pruned" in page and "Recovered" in page
    out = ship(world / "runs" / result.run, world / "out", store=world / "runs/.store", with_checkpoint=True)
    card = (out / "README.md").read_text()
    assert "library_name: onnx\n" in card and "load_classifier" in card
    assert type(load_classifier(out, kind="classification", labels=("bad", "good"), trained=True)).__name__.startswith(
        "Pruned"
    )


def test_a_pruned_student_is_recovered_against_the_teacher(world: Path) -> None:
    plan = planned(world, "small-recovered", student="one")
    nodes = {node.id: node for node in plan.nodes}
    assert nodes["recover"].inputs == {"teacher": "teacher", "student": "student-pruned"}
    assert nodes["student-fp32"].inputs == {"student": "recover"}


def test_a_model_is_pruned_and_recovered_in_turns(world: Path) -> None:
    """Each prune stage takes its share of what the last one left, and the result learns from the unpruned teacher."""
    nodes = {node.id: node for node in planned(world, "gradual").nodes}
    assert nodes["student-prune-more"].inputs == {"model": "student"}
    assert nodes["again"].inputs == {"teacher": "teacher", "student": "student-prune-more"}
    (result,) = run_all(request(world, "gradual"))
    before, after = result.pruning
    assert (before.stage, after.stage) == ("prune", "prune-more")
    tuned = {stage.kind: stage.info["tuning_score"] for stage in result.stages if "tuning_score" in stage.info}
    assert before.recovered == tuned["distill student"] and after.recovered == tuned["distill again"]
    assert after.whole == pytest.approx(before.recovered)
    assert before.points[-1].flops <= 0.7 and after.points[-1].flops <= 0.6
    assert all(set(kept) <= set(had) for kept, had in zip(after.points[-1].heads, before.points[-1].heads, strict=True))
    sizes = [
        dimensions(read_config(build_stage(request(world, "gradual"), name).path), classes=2)
        for name in ("teacher", "teacher-pruned", "again")
    ]
    first_flops, _, last_flops = (each.layers_flops(before.mean_length) for each in sizes)
    assert last_flops < 0.45 * first_flops
    write_report([result], world / "report")
    page = (world / "report/report.md").read_text()
    assert "| prune-more | fisher |" in page


def test_several_prune_stages_have_names_and_room(world: Path) -> None:
    twice = RECOVERED.replace("recovered", "twice").replace("  - export:", "  - prune: {flops: 0.5}\n  - export:")
    (world / "twice.yaml").write_text(twice)
    with pytest.raises(CompressError, match="give each of several stages of a kind a `name` of its own"):
        planned(world, "twice")
    (world / "twice.yaml").write_text(twice.replace("{flops: 0.5}", "{name: more, flops: 0.3, examples: 24}"))
    with pytest.raises(CompressError, match=r"stage more: flops: expected at least .*; found 0\.3"):
        run_all(request(world, "twice", "prune.flops=0.45"))


def test_general_distillation_has_no_student_to_begin_before_the_teacher_is_pruned(world: Path) -> None:
    recipe = RECOVERED.replace("recovered", "early").replace(
        "  - prune:", "  - general: {losses: [{name: hidden_mse}]}\n  - prune:"
    )
    (world / "early.yaml").write_text(recipe)
    with pytest.raises(CompressError, match="recipe early, stage general: makes the encoder of a new student"):
        planned(world, "early")
    assert planned(world, "early", "general.enabled=false").models[1] == "student-fp32"
