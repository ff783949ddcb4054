"""Every recipe of the catalogue, for a few steps on a tiny teacher, through the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from default_suite import keeping
from recipe_runs import TASK, TEACHER, TIMED, Run, arguments, check_layers, compress, is_quantized, result_of
from tokenizers import Tokenizer

from compress.catalog import names
from compress.pipeline import Request, plan_all
from compress.results import Result, read_result
from compress.spec.task import TaskSpec
from compress.tasks import load_reported

DEFAULT = (  # one of each way to a small model; the others run the same stages, longer or in another order
    *("distilbert", "int8", "logits", "minilm", "tinybert-small"),
    *("albert-int8", "prune-int8", "static", "vocabulary-int8"),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (folder / "task.yaml").write_text(TASK, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(world: Path) -> Run:
    """Return a function from recipe to its run's folder and result, run once."""
    runs: dict[str, tuple[Path, Result]] = {}

    def make(recipe: str) -> tuple[Path, Result]:
        if recipe not in runs:
            result = result_of(*arguments(recipe), cwd=world)
            runs[recipe] = world / "runs" / result.run, result
        return runs[recipe]

    return make


@pytest.mark.parametrize("recipe", keeping(names("recipes"), DEFAULT))
def test_the_recipe_runs_and_its_result_is_complete(run: Run, world: Path, recipe: str) -> None:
    folder, result = run(recipe)
    assert {
        "result.json",
        "predictions.npz",
        "models.json",
        "checkpoints.json",
        "log.jsonl",
        "report.md",
        "report.html",
    } <= {path.name for path in folder.iterdir()}
    baseline, *others = result.models
    assert (baseline.name, baseline.precision, baseline.delta) == ("teacher", "fp32", None)
    assert all(model.delta is not None for model in others)
    final = result.final
    assert is_quantized(result) == (recipe != "prune")
    assert final.file_bytes < baseline.file_bytes
    if recipe in TIMED:
        assert final.onnx is not None
        assert {(row.batch, row.length) for row in final.onnx.latency} >= {(1, 32), (0, 0)}
        assert baseline.torch_eager is not None
        assert result.noise
    assert result.recipe["name"] == recipe and (result.student_card is None) == (result.student is None)
    assert result.task.data.rows["dev"] == 40
    with np.load(folder / "predictions.npz") as arrays:
        gold = arrays["gold/dev"]
        for model in result.models:
            logits = arrays[f"{model.predictions}/dev"]
            assert logits.shape == (40, 2)
            assert model.scores["dev"]["accuracy"] == pytest.approx(100 * float((logits.argmax(1) == gold).mean()))
        check_fidelity(result, arrays)
        check_token_counts(folder, arrays["tokens/dev"])
    check_layers(result)
    assert "quarter by length" in (folder / "report.md").read_text("utf-8")
    check_requirements(world / "runs")


def check_requirements(runs: Path) -> None:
    """Check that ONNX Runtime 1.17 can read every model file."""
    paths = list(runs.rglob("model*.onnx"))
    assert paths
    for path in paths:
        model = onnx.load(path, load_external_data=False)
        opsets = {entry.domain: entry.version for entry in model.opset_import}
        assert opsets.pop("") <= 20, path
        assert opsets in ({}, {"com.microsoft": 1}), path
        assert model.ir_version <= 9, path


def check_token_counts(folder: Path, counts: np.ndarray) -> None:
    """Check that the counts are those of the teacher's own tokenizer on the split, truncated to the task's length."""
    checkpoint = json.loads((folder / "models.json").read_text("utf-8"))["teacher-fp32"]["checkpoint"]
    tokenizer = Tokenizer.from_file(str(folder.parent / ".store" / checkpoint / "tokenizer.json"))
    tokenizer.no_padding()
    spec = TaskSpec.model_validate(yaml.safe_load(TASK))
    (texts,) = load_reported(spec, None, None).splits["dev"].texts
    assert counts.tolist() == [min(len(tokenizer.encode(text).ids), spec.max_length) for text in texts]


def check_fidelity(result: Result, arrays: Mapping[str, np.ndarray]) -> None:
    """Check every quantized model's fidelity against the fp32 file of its own checkpoint."""
    assert [model.fidelity is None for model in result.models] == [model.precision == "fp32" for model in result.models]
    if result.final.fidelity is None:
        return
    fidelity = result.final.fidelity
    assert fidelity.reference == f"{result.final.name}-fp32"
    fp32, int8 = (arrays[f"{name}/dev"] for name in (fidelity.reference, result.final.predictions))
    own = next(model for model in result.models if model.predictions == fidelity.reference)
    assert fidelity.delta.points == pytest.approx(result.final.headline - own.headline)
    assert {flip.row - 1 for flip in fidelity.flipped} == set(np.flatnonzero(fp32.argmax(1) != int8.argmax(1)))
    assert fidelity.worst_logit_difference == pytest.approx(np.abs(fp32 - int8).max())
    assert fidelity.worst_logit_difference > 0
    noise, kept = (result.final.info[name] for name in ("signal_to_noise_db", "stayed_fp32"))
    assert len(noise) > result.final.info["int8_matmuls"]
    assert {name for name in kept if ".absorbed/" not in name} <= set(noise)  # these have a matrix for each head


def test_ship_verify_predict_checkpoint(run: Run, world: Path, tmp_path: Path) -> None:
    folder, result = run("distilbert")
    bundle = tmp_path / "bundle"
    shipped = compress("ship", folder, "-o", bundle, cwd=world)
    assert shipped.returncode == 0, shipped.stderr
    verified = compress("verify", bundle, "--json", cwd=world)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert json.loads(verified.stdout)["passed"] is True
    answered = compress("predict", bundle, "a good film", "a dull film", cwd=world)
    assert answered.returncode == 0, answered.stderr
    labels = [line.split("\t")[0] for line in answered.stdout.splitlines()]
    assert len(labels) == 2 and set(labels) <= set(result.task.labels)
    taken = compress("checkpoint", folder, "--stage", "teacher", "-o", tmp_path / "teacher", cwd=world)
    assert taken.returncode == 0 and (tmp_path / "teacher" / "model.safetensors").is_file(), taken.stderr
    graph = bundle / "onnx" / "model_quantized.onnx"
    graph.write_bytes(graph.read_bytes()[:-10])
    broken = compress("verify", bundle, cwd=world)
    assert broken.returncode == 1
    assert "model_quantized.onnx" in broken.stdout
    assert "Traceback" not in broken.stderr


@pytest.mark.slow
def test_the_plain_graph_gives_the_fast_one_s_answers(run: Run, world: Path) -> None:
    _, fast = run("int8")
    result = result_of(*arguments("int8", timed=False), "--set", "export.graph=plain", cwd=world)
    assert result.stages[0].key == fast.stages[0].key
    logits = [
        np.load(world / "runs" / each.run / "predictions.npz")[f"{each.models[0].predictions}/dev"]
        for each in (fast, result)
    ]
    np.testing.assert_allclose(*logits, atol=1e-5)  # fp32 sums in another order


@pytest.mark.slow
def test_every_form_is_measured_shipped_and_verified(run: Run, world: Path, tmp_path: Path) -> None:
    forms = ("quantize.method=static", "quantize.portable=true", "quantize.avx2=true")
    options = [word for form in forms for word in ("--set", form)]
    result = result_of(*arguments("int8"), *options, cwd=world)
    assert [model.precision for model in result.models] == ["fp32", "qdq", "avx2", "int8"]
    assert [model.info["int8_format"] for model in result.models[1:]] == ["qdq", "static", "static"]
    assert all(model.info["calibration_examples"] == result.task.data.rows["train"] for model in result.models[1:])
    bundle = tmp_path / "bundle"
    shipped = compress("ship", world / "runs" / result.run, "-o", bundle, cwd=world)
    assert shipped.returncode == 0, shipped.stderr
    graphs = {
        "model.onnx",
        "model_unpadded.onnx",
        "model_quantized.onnx",
        "model_quantized_unpadded.onnx",
        "model_quint8_avx2.onnx",
        "model_quint8_avx2_unpadded.onnx",
        "model_qdq.onnx",
    }
    assert {path.name for path in (bundle / "onnx").iterdir()} == graphs
    record = json.loads((bundle / "bundle.json").read_text())
    times = {name: model["onnx"]["latency"][0]["cpu_p50"] for name, model in record["models"].items()}
    assert times[record["fastest"]] == min(times.values())
    verified = compress("verify", bundle, "--simulate", "--json", cwd=world)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    checks = {check["name"]: check["detail"] for check in json.loads(verified.stdout)["checks"]}
    assert {"qdq against fp32", "avx2 against fp32", "simulated qdq"} <= checks.keys()
    assert checks["saturation avx2"].startswith("none of")
    assert checks["simulated avx2"].startswith("largest difference")
    count = result.models[-1].info["int8_matmuls"]
    kernels = {detail for name, detail in checks.items() if name.startswith("kernels ")}
    assert kernels == {f"all {count} int8 matmuls are computed in integers"}
    answers = [
        compress("predict", bundle, "--precision", name, "a good film", "--json", cwd=world) for name in ("qdq", "avx2")
    ]
    assert [json.loads(answer.stdout)["precision"] for answer in answers] == ["qdq", "avx2"]


def test_a_report_of_several_runs(run: Run, world: Path, tmp_path: Path) -> None:
    folders = [run(recipe)[0] for recipe in ("distilbert", "int8")]
    done = compress("report", *folders, "-o", tmp_path / "report", cwd=world)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "distilbert" in page
    assert "int8" in page


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


@pytest.mark.end_to_end
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
    result = result_of(*arguments("int8", timed=False), "--out", "untimed", cwd=world)
    assert [model.scores for model in result.models] == [model.scores for model in timed.models]
    assert [model.fidelity for model in result.models] == [model.fidelity for model in timed.models]
    assert all(model.onnx is None and model.torch_eager is None for model in result.models)
    assert "--no-bench" in result.command
    report = (world / "untimed" / result.run / "report.md").read_text(encoding="utf-8")
    assert "latency of every model" not in report
