"""What is computed again: nothing by the same command, a damaged artefact, latency where asked for; what recipes share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recipe_runs import Run, arguments, compress

from compress.pipeline import Request, plan_all
from compress.results import Result, read_result


def test_the_same_command_again_computes_nothing(run: Run, world: Path) -> None:
    folder, result = run("int8")
    before = (folder / "result.json").read_bytes()
    again = compress(*arguments("int8"), cwd=world)
    assert again.returncode == 0, again.stderr
    assert "run     " not in again.stderr
    assert again.stderr.count("cached  ") == len(result.stages) + len(result.models) + 1
    assert (folder / "result.json").read_bytes() == before
    assert f"runs/{result.run}" in again.stdout


def test_recipes_share_the_teacher(run: Run, world: Path) -> None:
    _, first = run("distilbert")
    _, second = run("int8")
    assert first.stages[0].key == second.stages[0].key
    manifests = [json.loads(path.read_text()) for path in (world / "runs" / ".store").glob("*/manifest.json")]
    assert [manifest["key"] for manifest in manifests if manifest["describe"]["kind"] == "finetune"] == [
        first.stages[0].key
    ]


def test_a_flipped_byte_in_the_store_is_noticed_and_rebuilt(run: Run, world: Path) -> None:
    _, result = run("distilbert")
    key = next(stage.key for stage in result.stages if stage.kind == "quantize student-int8")
    graph = world / "runs" / ".store" / key / "model_quantized.onnx"
    intact = graph.read_bytes()
    graph.write_bytes(intact[:100] + bytes([intact[100] ^ 1]) + intact[101:])
    again = compress(*arguments("distilbert"), cwd=world)
    assert again.returncode == 0, again.stderr
    assert "run     quantize student-int8" in again.stderr
    assert graph.read_bytes() == intact


def test_from_python_the_result_is_typed(run: Run, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import compress as package
    from compress.pipeline import BenchSettings

    _, result = run("int8")
    monkeypatch.chdir(world)
    (again,) = package.run(
        "int8", tasks=["task.yaml"], teacher="tiny.yaml", root="runs", threads=1, bench=BenchSettings(runs=1)
    )
    assert isinstance(again, Result)
    assert again == result


@pytest.mark.parametrize(("longer", "shorter"), [("tinybert-int8-auto", "tinybert-small"), ("albert-int8", "albert")])
def test_a_recipe_that_differs_in_its_int8_shares_all_artefacts_before(world: Path, longer: str, shorter: str) -> None:
    plans = [
        plan_all(Request((name,), (str(world / "task.yaml"),), teacher=str(world / "tiny.yaml")))[0]
        for name in (longer, shorter)
    ]
    keys = [{node.id: (node.kind.name, node.key) for node in plan.nodes} for plan in plans]
    until = [{name: key for name, (kind, key) in each.items() if kind != "quantize"} for each in keys]
    assert len(until[0]) > 4
    assert until[0] == until[1]
    assert keys[0] != keys[1]


def test_latency_is_measured_anew_where_that_is_asked_for(run: Run, world: Path) -> None:
    folder, first = run("int8")
    words = (*arguments("int8"), "--json")
    anew = compress(*words, "--rebench", cwd=world)
    result = Result.model_validate(json.loads(anew.stdout)[0])
    assert [model.onnx for model in result.models] != [model.onnx for model in first.models], anew.stderr
    for left, right in zip(result.models, first.models, strict=True):
        assert left.model_copy(update={"onnx": right.onnx, "torch_eager": right.torch_eager}) == right
    assert result.command == first.command
    assert read_result(folder) == result  # and the next run finds it
    assert Result.model_validate(json.loads(compress(*words, cwd=world).stdout)[0]) == result


def test_latency_is_not_measured_anew_and_left_out(world: Path) -> None:
    done = compress(*arguments("logits"), "--rebench", cwd=world)
    assert done.returncode == 2
    assert "--no-bench" in done.stderr


@pytest.mark.slow
def test_without_latency_the_rest_is_the_same(run: Run, world: Path) -> None:
    _, timed = run("int8")
    done = compress(*arguments("int8"), "--no-bench", "--json", "--out", "untimed", cwd=world)
    assert done.returncode == 0, done.stderr
    result = Result.model_validate(json.loads(done.stdout)[0])
    assert [model.scores for model in result.models] == [model.scores for model in timed.models]
    assert [model.fidelity for model in result.models] == [model.fidelity for model in timed.models]
    assert all(model.onnx is None and model.torch_eager is None for model in result.models)
    assert "--no-bench" in result.command
    report = (world / "untimed" / result.run / "report.md").read_text(encoding="utf-8")
    assert "latency of every model" not in report
