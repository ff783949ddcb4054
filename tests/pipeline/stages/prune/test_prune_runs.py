"""What pruning leaves of a model, and what the run reports about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from default_suite import slow
from prune_runs import TEACHER_ALONE, build_pruned, planned, request

from compress.cli.plans import plan_documents
from compress.models.checkpoints.folders import load_classifier, load_tokenizer, pad_id
from compress.models.dimensions import dimensions, read_config
from compress.models.features.predict import predict_logits
from compress.pipeline import Listener, run_all
from compress.pipeline.run import build_stage
from compress.pruning import repair, scores
from compress.report import write_report
from compress.tasks import headline, score

pytestmark = pytest.mark.end_to_end

# kind -> the columns, and a function from a number to a row
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
            "question": "is it good " + "?" * (1 + n // 60),
            "context": "the film is good . " * (1 + n % 4),
            "answers": [{"start": 4, "end": 8}],
        },
    ),
    "choice": (
        "text: [context, endings]\nlabel: label\nmetrics: [accuracy]\n",
        lambda n: {
            "context": f"the film {n % 9}" + " again" * (n // 60),
            "endings": ["is good", "is bad"][:: 1 - 2 * (n % 2)],
            "label": n % 2,
        },
    ),
    "embedding": (
        "text: [one, other]\nlabel: score\nmetrics: [spearman]\n",
        lambda n: {"one": f"the film {n}", "other": "good film is bad"[: 4 + n % 9], "score": (n % 9) / 9},
    ),
}  # fmt: skip


def test_what_is_left_costs_no_more_than_the_budget(world: Path) -> None:
    artifact = build_pruned(world, "alone")
    info, sizes = artifact.info, dimensions(read_config(artifact.path), classes=2)
    plan = planned(world, "alone")
    share = sizes.layers_flops(info["mean_length"]) / plan.sizes["teacher"].layers_flops(info["mean_length"])
    assert 0.4 < share <= 0.5
    (point,) = info["points"]
    assert share == pytest.approx(point["flops"])
    assert sizes.pruned is not None and sizes.pruned.field == {name: point[name] for name in ("heads", "neurons")}
    assert all(count % 16 == 0 for count in point["neurons"])
    assert (info["budget"], point["budget"], info["examples"]) == ("flops", 0.5, 24)
    assert (info["score"], info["repair"]) == ("fisher", "least_squares")
    assert all(0 <= score <= 100 for score in (info["whole"], point["pruned"], point["repaired"]))


@pytest.mark.parametrize(
    ("method", "score"),
    [
        ("least_squares", "fisher"),
        ("least_squares", "obs"),
        *slow(("false", "fisher"), ("false", "obs")),
    ],
)
def test_the_result_and_the_report_say_how_it_was_pruned(world: Path, score: str, method: str) -> None:
    words = request(world, "plain", f"prune.score={score}", f"prune.repair={method}")
    (result,) = run_all(words)
    (record,) = result.pruning
    assert (record.stage, record.examples) == ("prune", 24)
    assert record.repair_examples == (None if method == "false" else 24)
    assert (record.score, record.repair) == (score, None if method == "false" else method)
    (point,) = record.points
    assert 0.4 < point.flops <= 0.5 and (point.repaired is None) == (method == "false")
    write_report([result], world / "report")
    lines = (world / "report/report.md").read_text().splitlines()
    (row,) = (line for line in lines if "flops 0.5" in line and f"| {score} |" in line)
    assert f"| {score} | {'–' if method == 'false' else method} |" in row


@pytest.mark.parametrize(("score", "judging"), [("obs", "judging layers"), *slow(("fisher", "judging by examples"))])
def test_progress_says_which_pass_it_is(world: Path, score: str, judging: str) -> None:
    passes: dict[str, list[tuple[int, int | None]]] = {}

    class Recorder(Listener):
        def progress(self, what: str, done: int, total: int | None) -> None:
            passes.setdefault(what, []).append((done, total))

    run_all(request(world, "plain", f"prune.score={score}", "prune.flops=[0.75, 0.5]"), Recorder())
    assert list(passes) == [
        judging,
        "repairing layers at flops 0.75",
        "repairing layers at flops 0.5",
        "comparing layers",
    ]
    assert all(counts == sorted(counts) and counts[-1][0] == counts[-1][1] for counts in passes.values())


def test_the_error_of_layers_needs_no_gradient(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "mask_gradients", lambda *words, **more: 1 / 0)
    build_pruned(world, "alone", "prune.score=obs")
    with pytest.raises(ZeroDivisionError):
        build_pruned(world, "alone")


def test_without_a_repair_the_kept_weights_are_those_of_the_model(world: Path) -> None:
    from safetensors.numpy import load_file

    artifact = build_pruned(world, "alone", "prune.repair=false")
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
    (record,) = result.pruning
    assert record.model == "student" and record.recovered is None
    (point,) = record.points
    assert final.architecture == f"1 x 32, {len(point.heads[0])} heads, FFN {point.neurons[0]}"
    assert final.parameters < result.models[0].parameters
    assert any("student-pruned: 1 x 32" in notice and "repaired" in notice for notice in result.settings["notices"])


def write_task(world: Path, kind: str, columns: str, row: Callable[[int], dict[str, Any]]) -> None:
    for split, numbers in {"train": range(60), "dev": range(60, 90)}.items():
        (world / f"{split}.jsonl").write_text("".join(json.dumps(row(n)) + "\n" for n in numbers))
    files = "files: {train: train.jsonl, dev: dev.jsonl}\n"
    (world / f"{kind}.yaml").write_text(f"name: own\nkind: {kind}\n{columns}max_length: 24\n{files}")


@pytest.mark.parametrize("kind", KINDS)
def test_models_for_every_kind_of_task_are_pruned(world: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[bool] = []

    def first_token(*words: Any, first_token: bool, **more: Any) -> None:
        fitted.append(first_token)
        repaired(*words, first_token=first_token, **more)

    repaired = repair.repair
    monkeypatch.setattr(repair, "repair", first_token)
    write_task(world, kind, *KINDS[kind])
    info = build_stage(request(world, "alone", task=kind), "teacher-pruned").info
    (point,) = info["points"]
    assert 0 < point["flops"] <= 0.5
    assert point["repaired"] is not None and min(point["divergence"], point["repaired_divergence"]) >= 0
    assert (point["same"] is None) == (kind in ("regression", "embedding"))
    assert fitted == [kind not in ("tagging", "span", "embedding")]


@pytest.mark.parametrize("kind", ["multilabel", "span"])
def test_a_pruned_model_decides_by_a_threshold_of_its_own(world: Path, kind: str) -> None:
    """The model then scores what its record says, the best score that any threshold gives."""
    columns, row = KINDS[kind]
    emptied = {"labels": [], "answers": []}
    write_task(
        world,
        kind,
        columns,
        lambda n: row(n) | {name: emptied[name] for name in emptied if name in row(n) and n % 5 == 0},
    )
    artifact, task = (
        build_stage(request(world, "alone", task=kind), "teacher-pruned"),
        planned(world, "alone", task=kind).task,
    )
    name = "null_score_diff_threshold"
    if kind == "multilabel":
        assert artifact.info.keys() & {"threshold", "thresholds"}
    else:
        assert read_config(artifact.path)[name] == artifact.info[name]
    data, tuning = task.data, task.encoded("tuning", load_tokenizer(artifact.path), 24)
    model: Any = load_classifier(artifact.path, kind=data.spec.kind, labels=data.labels, trained=True)
    outputs = predict_logits(model, tuning, pad_id(read_config(artifact.path)))
    assert headline(score(data.spec, data.labels, outputs, tuning.labels)) == artifact.info["points"][-1]["repaired"]


@pytest.mark.slow
def test_a_model_is_pruned_and_then_loses_tokens(world: Path) -> None:
    recipe = TEACHER_ALONE.replace("alone", "both").replace("  - export:", "  - vocabulary:\n  - export:")
    (world / "both.yaml").write_text(recipe)
    plan = planned(world, "both")
    assert plan.models[1:] == ("teacher-pruned-fp32", "teacher-pruned-int8")
    (document,) = plan_documents([plan], world / "runs")
    for name in ("teacher-pruned", "teacher-pruned-vocabulary"):
        assert document["models"][name]["parameters"] is None
    (result,) = run_all(request(world, "both"))
    assert result.vocabulary is not None
    assert result.pruning[0].model == result.vocabulary.model == result.final.name
    (document,) = plan_documents([planned(world, "both")], world / "runs")
    counts = [document["models"][f"teacher{name}"]["parameters"] for name in ("", "-pruned", "-pruned-vocabulary")]
    assert counts == sorted(counts, reverse=True) and counts[-1] == result.final.parameters


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "student"), [("recovered", None), ("small", "one")])
def test_whole_parts_go_where_the_budget_is_small(world: Path, recipe: str, student: str | None) -> None:
    """The rest is recovered, trained for int8, quantized and reported."""
    (result,) = run_all(request(world, recipe, "prune.flops=0.28", student=student))
    (point,) = result.pruning[0].points
    assert point.flops <= 0.28 and any(point.heads)
    assert () in point.heads if student is None else point.neurons == (0,)  # a single layer keeps a head
    assert result.final.precision == "int8"
    write_report([result], world / "report")
    lines = (world / "report/report.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if "Which, from 0" in line)
    rows = [line.split("|")[3:6] for line in lines[start + 2 : start + 2 + len(point.heads)]]
    for row, heads, neurons in zip(rows, point.heads, point.neurons, strict=True):
        wanted = [str(len(heads) or "none"), ", ".join(map(str, heads)) or "–", str(neurons or "none")]
        assert [cell.strip() for cell in row] == wanted
