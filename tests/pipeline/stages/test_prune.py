"""Pruning in a run: what is planned, what it leaves, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.cli.plans import plan_documents, print_plans
from compress.errors import CompressError
from compress.models.dimensions import dimensions, read_config
from compress.pipeline import Plan, Request, plan_all, run_all
from compress.pipeline.run import build_stage
from compress.pipeline.stages import layer_costs
from compress.pruning import scores
from compress.report import write_report
from compress.store import Artifact

TEACHER_ALONE = """
name: alone
title: The teacher itself
stages:
  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}
  - prune: {examples: 24}
  - export:
  - quantize:
"""
STUDENT = """
name: small
title: A student
student: one.yaml
stages:
  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}
  - distill: {max_steps: 8, batch_size: 8, losses: [{name: soft_target}]}
  - prune: {flops: 0.6, examples: 24}
  - quantize_aware: {max_steps: 2, batch_size: 8}
  - export:
  - quantize: {method: qat}
"""
HEALED = """
name: healed
title: Pruned and healed
stages:
  - finetune: {max_steps: 8, batch_size: 8, learning_rate: 1.0e-3}
  - prune: {examples: 24}
  - distill: {max_steps: 8, batch_size: 8, losses: [{name: soft_target}, {name: hidden_mse}]}
  - export:
  - quantize:
"""
CARDS = {
    "one": "{name: one, title: S, layers: 1}",
    "shared": "{name: shared, title: S, architecture: albert, layers: 2, init: convert, albert: {embedding: 16, share: all}}",
}
EMBEDDING = """
name: toy
kind: embedding
text: [sentence1, sentence2]
label: score
metrics: [spearman]
max_length: 16
synthetic: {generator: similarity, train: 40, dev: 8}
"""


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    (tmp_path / "alone.yaml").write_text(TEACHER_ALONE)
    (tmp_path / "small.yaml").write_text(STUDENT)
    (tmp_path / "plain.yaml").write_text(TEACHER_ALONE.replace("alone", "plain").replace("  - quantize:\n", ""))
    (tmp_path / "healed.yaml").write_text(HEALED)
    heal = "  - distill: {name: heal, max_steps: 8}\n"
    healed = STUDENT.replace("name: small", "name: small-healed").replace(
        "  - quantize_aware", f"{heal}  - quantize_aware"
    )
    (tmp_path / "small-healed.yaml").write_text(
        healed.replace("  - quantize_aware: {max_steps: 2, batch_size: 8}\n", "").replace("{method: qat}", "{}")
    )
    for name, card in CARDS.items():
        (tmp_path / f"{name}.yaml").write_text(card)
    return tmp_path


def request(world: Path, recipe: str, *overrides: str, student: str | None = None, task: str = "task") -> Request:
    card = None if student is None else str(world / f"{student}.yaml")
    words = (str(world / f"{recipe}.yaml"),), (str(world / f"{task}.yaml"),)
    return Request(
        *words, teacher=str(world / "teacher"), student=card, root=world / "runs", overrides=overrides, threads=1, bench=None
    )  # fmt: skip


def planned(world: Path, recipe: str, *overrides: str, **more: str) -> Plan:
    return plan_all(request(world, recipe, *overrides, **more))[0]


def test_a_pruned_teacher_is_a_model_beside_the_baseline(world: Path) -> None:
    plan = planned(world, "alone")
    assert plan.models == ("teacher-fp32", "teacher-pruned-fp32", "teacher-pruned-int8")
    assert (plan.checkpoint("teacher"), plan.checkpoint("teacher-pruned")) == ("teacher", "teacher-pruned")


def test_a_pruned_student_takes_the_place_of_the_student(world: Path) -> None:
    plan = planned(world, "small", student="one")
    assert plan.models == ("teacher-fp32", "student-fp32", "student-int8")
    nodes = {node.id: node for node in plan.nodes}
    assert nodes["student-pruned"].inputs == {"model": "student"}
    assert nodes["student-qat"].inputs == {"model": "student-pruned"}


def test_the_plan_says_that_the_run_chooses_the_widths(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for recipe, student, name in (("alone", None, "teacher-pruned"), ("small", "one", "student-pruned")):
        more = {} if student is None else {"student": student}
        (document,) = plan_documents([planned(world, recipe, **more)], world / "runs")
        pruned = document["models"][name]
        assert pruned["architecture"].endswith("x 32, sizes chosen by the run")
        assert (pruned["parameters"], pruned["flops_per_token"]) == (None, None)
    (document,) = plan_documents([planned(world, "healed", "prune.latency=0.5")], world / "runs")
    assert list(document["models"]) == ["teacher", "teacher-pruned"]
    print_plans([document])
    assert "latency 0.5" in capsys.readouterr().out


def test_the_key_has_what_the_pruning_depends_on(world: Path) -> None:
    def key(*overrides: str) -> str:
        return next(node.key for node in planned(world, "alone", *overrides).nodes if node.kind.name == "prune")

    different = [key(), key("prune.flops=0.6"), key("prune.examples=20"), key("prune.repair=false")]
    assert len(set(different)) == 4
    assert key("quantize.method=dynamic") == key()


def made(world: Path, recipe: str, *overrides: str, student: str | None = None) -> Artifact:
    words = request(world, recipe, *overrides, student=student)
    return build_stage(words, "teacher-pruned" if student is None else "student-pruned")


def test_what_is_left_costs_no_more_than_the_budget(world: Path) -> None:
    artifact = made(world, "alone")
    info, sizes = artifact.info, dimensions(read_config(artifact.path), classes=2)
    plan = planned(world, "alone")
    share = sizes.layers_flops(info["mean_length"]) / plan.sizes["teacher"].layers_flops(info["mean_length"])
    assert 0.4 < share <= 0.5
    (point,) = info["points"]
    assert share == pytest.approx(point["flops"])
    assert sizes.pruned is not None and sizes.pruned.field == {name: point[name] for name in ("heads", "neurons")}
    assert all(count % 16 == 0 for count in point["neurons"])
    assert (info["budget"], point["budget"], info["examples"]) == ("flops", 0.5, 24)
    assert all(0 <= score <= 100 for score in (info["whole"], point["pruned"], point["repaired"]))


def test_without_a_repair_the_kept_weights_are_those_of_the_model(world: Path) -> None:
    from safetensors.numpy import load_file

    artifact = made(world, "alone", "prune.repair=false")
    whole = build_stage(request(world, "alone"), "teacher")
    assert artifact.info["points"][0]["repaired"] is None
    before, after = (load_file(each.path / "model.safetensors") for each in (whole, artifact))
    name = "bert.encoder.layer.0.output.dense"
    assert (before[f"{name}.bias"] == after[f"{name}.bias"]).all()
    columns = {tuple(column) for column in before[f"{name}.weight"].T.tolist()}
    assert {tuple(column) for column in after[f"{name}.weight"].T.tolist()} <= columns


def test_a_run_says_what_was_taken_and_what_is_left(world: Path) -> None:

    (result,) = run_all(request(world, "small", student="one"))
    final = result.final
    assert (final.name, final.precision) == ("student", "int8")
    record = result.pruning
    assert record is not None and record.model == "student" and record.healed is None
    (point,) = record.points
    assert final.architecture == f"1 x 32, {len(point.heads[0])} heads, FFN {point.neurons[0]}"
    assert final.parameters < result.models[0].parameters
    assert any("student-pruned: 1 x 32" in notice and "repaired" in notice for notice in result.settings["notices"])


# kind -> the columns, and one row of each number
KINDS: dict[str, tuple[str, Callable[[int], dict[str, Any]]]] = {
    "regression": (
        "text: [one, other]\nlabel: score\nmetrics: [pearson]\n",
        lambda n: {"one": f"the film {n}", "other": "good film is bad"[: 4 + n % 9], "score": (n % 9) / 9},
    ),
    "multilabel": (
        "text: [one]\nlabel: labels\nlabels: [x, y, z]\nmetrics: [f1_micro]\n",
        lambda n: {"one": f"{n} good film is bad"[: 8 + n % 9], "labels": [name for name in "xyz" if n % (3 + ord(name) % 3)]},
    ),
    "tagging": (
        "text: [tokens]\nlabel: tags\nmetrics: [accuracy]\n",
        lambda n: {"tokens": [str(n), "good", "film"][: 2 + n % 2], "tags": ["O", "B-GOOD", "O"][: 2 + n % 2]},
    ),
    "ranking": (
        "text: [query, passage]\nlabel: relevance\nmetrics: [mrr@10]\n",
        lambda n: {"query": f"the film {n // 3}", "passage": "good film is bad"[: 4 + n % 9], "relevance": int(n % 3 == 1)},
    ),
    "span": (
        "text: [question, context]\nlabel: answers\nmetrics: [exact_match]\n",
        lambda n: {
            "question": "is it good ?",
            "context": "the film is good . " * (1 + n % 4),
            "answers": [{"start": 4, "end": 8}],
        },
    ),
    "choice": (
        "text: [context, endings]\nlabel: label\nmetrics: [accuracy]\n",
        lambda n: {"context": f"the film {n % 9}", "endings": ["is good", "is bad"][:: 1 - 2 * (n % 2)], "label": n % 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_models_for_every_kind_of_task_are_pruned(world: Path, kind: str) -> None:
    columns, row = KINDS[kind]
    for split, numbers in {"train": range(60), "dev": range(60, 90)}.items():
        (world / f"{split}.jsonl").write_text("".join(json.dumps(row(n)) + "\n" for n in numbers))
    files = "files: {train: train.jsonl, dev: dev.jsonl}\n"
    (world / f"{kind}.yaml").write_text(f"name: own\nkind: {kind}\n{columns}max_length: 24\n{files}")
    info = build_stage(request(world, "alone", task=kind), "teacher-pruned").info
    (point,) = info["points"]
    assert 0 < point["flops"] <= 0.5
    assert point["repaired"] is not None


@pytest.mark.parametrize(
    ("recipe", "overrides", "more", "found"),
    [
        ("alone", ["prune.flops=0.05"], {}, r"stage prune: flops: expected at least 0\.\d+, which one head and 16 neurons"),
        ("alone", ["prune.flops=1"], {}, r"prune.flops: expected a number below 1"),
        ("alone", ["prune.examples=0"], {}, r"prune.examples"),
        ("small", [], {"student": "shared"}, r"layers of an ALBERT cannot differ .* --set prune.enabled=false"),
        ("alone", [], {"task": "vectors"}, r"stage prune: goes by the loss on the task's labels, and those of embedding tasks"),
        ("alone", ["prune.flops=[0.5,0.75]"], {}, r"prune.flops: expected falling numbers"),
        ("alone", ["prune.flops=0.5", "prune.latency=0.5"], {}, r"expected one budget, found flops and latency"),
        ("alone", ["prune.size_mb=0.001"], {}, r"stage prune: size_mb: expected at least 0\.\d+, which one head and 16 neurons"),
        ("alone", ["prune.size_mb=50"], {}, r"stage prune: size_mb: expected less than the model has, about 0\.0\d+; found 50"),
        ("healed", ["distill.losses=[{name: attention_mse}]"], {}, r"stage distill.*: attention_mse: compares heads.*leave the loss out"),
        ("healed", ["distill.losses=[{name: relation_kl}]"], {}, r"stage distill.*: relation_kl: compares heads"),
        ("small", ["distill.enabled=false"], {"student": "one"}, r"prune: every distill stage is switched off"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_before_anything_runs(
    world: Path, recipe: str, overrides: list[str], more: dict[str, str], found: str
) -> None:
    (world / "vectors.yaml").write_text(EMBEDDING)
    with pytest.raises(CompressError, match=found):
        run_all(request(world, recipe, *overrides, **more))
    assert not (world / "runs").exists()


def test_a_list_of_budgets_is_a_curve_whose_last_point_goes_on(world: Path) -> None:
    artifact = made(world, "alone", "prune.flops=[0.8,0.6,0.5]")
    points = artifact.info["points"]
    assert [point["budget"] for point in points] == [0.8, 0.6, 0.5]
    assert [point["flops"] for point in points] == sorted((point["flops"] for point in points), reverse=True)
    assert all(point["flops"] <= point["budget"] for point in points)
    alone = made(world, "alone")
    assert points[-1] == alone.info["points"][0]
    files = [(each.path / "model.safetensors").read_bytes() for each in (artifact, alone)]
    assert files[0] == files[1]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_file_is_as_large_as_the_budget_says(world: Path, precision: str) -> None:
    recipe, settings = ("alone", ["quantize.method=static"]) if precision == "int8" else ("plain", [])
    most = build_stage(request(world, recipe, *settings, "prune.flops=0.7"), f"teacher-pruned-{precision}")
    whole = round(most.info["bytes"] / 1e6, 4)
    words = request(world, recipe, *settings, f"prune.size_mb={whole}")
    (point,) = build_stage(words, "teacher-pruned").info["points"]
    name = {"fp32": "model.onnx", "int8": "model_quantized.onnx"}[precision]
    size = (build_stage(words, f"teacher-pruned-{precision}").path / name).stat().st_size / 1e6
    assert size <= whole
    assert size == pytest.approx(point["reached"], rel=0.02)


def planted(files: Sequence[Path], length: int) -> list[float]:
    """Milliseconds as if a byte of a model took as long as any other."""
    assert 4 < length <= 16
    return [file.stat().st_size / 1000 for file in files]


def test_time_is_measured_once_and_the_budget_is_of_the_whole_model(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def times(files: Sequence[Path], length: int) -> list[float]:
        measured.append(len(files))
        return planted(files, length)

    monkeypatch.setattr(layer_costs, "_times", times)
    with monkeypatch.context() as broken:
        broken.setattr(scores, "mask_gradients", lambda *words, **more: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            made(world, "alone", "prune.latency=0.9")
    (point,) = made(world, "alone", "prune.latency=0.9").info["points"]
    assert len(measured) == 1 and measured[0] > 6
    assert point["reached"] <= 0.9 and point["flops"] < 0.9
    with pytest.raises(CompressError, match=r"prune: latency: expected at least 0\.\d+, which one head and 16 neurons"):
        made(world, "alone", "prune.latency=0.05")


def test_a_pruned_teacher_that_is_healed_is_the_student(world: Path) -> None:
    plan = planned(world, "healed")
    assert plan.models == ("teacher-fp32", "student-fp32", "student-int8")
    nodes = {node.id: node for node in plan.nodes}
    assert nodes["student"].inputs == {"teacher": "teacher", "student": "teacher-pruned"}
    assert planned(world, "healed", "distill.enabled=false").models[1] == "teacher-pruned-fp32"
    (result,) = run_all(request(world, "healed"))
    record, log = result.pruning, next(stage for stage in result.stages if stage.kind == "distill student")
    assert record is not None and record.healed == log.info["tuning_score"]
    assert result.final.name == record.model == "student" and "heads" in result.final.architecture
    assert result.final.parameters < result.models[0].parameters
    write_report([result], world / "report")
    page = (world / "report/report.md").read_text()
    assert "the teacher, pruned" in page and "Healed" in page


def test_a_model_is_pruned_and_then_loses_tokens(world: Path) -> None:
    recipe = TEACHER_ALONE.replace("alone", "both").replace("  - export:", "  - vocabulary:\n  - export:")
    (world / "both.yaml").write_text(recipe)
    plan = planned(world, "both")
    assert plan.models[1:] == ("teacher-pruned-fp32", "teacher-pruned-int8")
    (document,) = plan_documents([plan], world / "runs")
    for name in ("teacher-pruned", "teacher-pruned-vocabulary"):
        assert document["models"][name]["parameters"] is None
    (result,) = run_all(request(world, "both"))
    assert result.pruning is not None and result.vocabulary is not None
    assert result.pruning.model == result.vocabulary.model == result.final.name
    (document,) = plan_documents([planned(world, "both")], world / "runs")
    counts = [document["models"][f"teacher{name}"]["parameters"] for name in ("", "-pruned", "-pruned-vocabulary")]
    assert counts == sorted(counts, reverse=True) and counts[-1] == result.final.parameters


def test_a_pruned_student_is_healed_against_the_teacher(world: Path) -> None:
    plan = planned(world, "small-healed", student="one")
    nodes = {node.id: node for node in plan.nodes}
    assert nodes["heal"].inputs == {"teacher": "teacher", "student": "student-pruned"}
    assert nodes["student-fp32"].inputs == {"student": "heal"}


@pytest.mark.parametrize(
    ("stages", "found"),
    [
        ("[finetune, prune, distill, prune, export]", "expected each at most once"),
        ("[finetune, vocabulary, distill, export]", "expected each at most once|come together"),
        ("[finetune, prune, vocabulary, distill, export]", "expected each at most once"),
        ("[finetune, distill, prune, export]", "`student` and a `distill` stage come together"),
    ],
)
def test_orders_that_make_no_sense_are_refused(world: Path, stages: str, found: str) -> None:
    (world / "odd.yaml").write_text(f"name: odd\ntitle: Odd\nstages: {stages}\n")
    with pytest.raises(CompressError, match=found):
        planned(world, "odd")


def test_switched_off_it_leaves_nothing_behind(world: Path) -> None:
    assert planned(world, "alone", "prune.enabled=false").models == ("teacher-fp32", "teacher-int8")
