"""`compress bench` from end to end on tiny models: its tables, its JSON, and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compress import provenance
from compress.bench import AGAIN, RIGOR
from compress.results import Latency, Runtime


@pytest.fixture
def model(tiny_onnx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tiny_onnx("bert")


@pytest.mark.end_to_end
def test_json_has_every_measurement_and_profile(cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compress.machine.usable_cores", lambda: 2)
    options = ("--shape", "1x8", "--runs", "3", "--threads", "1", "--threads", "all", "--threads", "2", "--profile")
    code, out, _ = cli("bench", model, *options, "--json")
    assert code == 0
    document = json.loads(out)
    name = f"{model.parent.name}/model.onnx"
    rows = [(entry["name"], entry["threads"]) for entry in document["latency"]]
    assert rows == [(name, 1), (AGAIN, 1), (name, 2), (AGAIN, 2)]
    for entry in document["latency"]:
        (row,) = entry["latency"]
        assert (row["batch"], row["length"], row["runs"]) == (1, 8, 3)
        assert row["cpu_p50"] >= 0
    (profile,) = document["profiles"]
    assert (profile["name"], profile["batch"], profile["length"]) == (name, 1, 8)
    assert sum(kind["share"] for kind in profile["kinds"]) == pytest.approx(1)
    assert profile["gemm_share"] == pytest.approx(profile["groups"]["fp32 matmuls"])
    assert {"cpu", "isa"} <= set(document["machine"])
    assert document["versions"]["onnxruntime"]
    assert provenance.Code.model_validate(document["code"]) == provenance.running_code()


def test_pages_are_written_where_they_are_asked_for_and_refused_before_anything_is_measured(
    cli, model: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compress.bench.measure", lambda *arguments: planted_row(1.0))
    code, out, err = cli("bench", model.resolve(), "--shape=1x8", "--out=pages")
    assert code == 0, err
    assert out.splitlines()[-4:] == [f"pages/bench.{kind}" for kind in ("md", "html", "svg", "json")]
    document = json.loads(Path("pages/bench.json").read_text(encoding="utf-8"))
    name = model.resolve().relative_to(tmp_path) if model.is_relative_to(tmp_path) else model.name
    assert document["command"] == f"compress bench {name} --shape=1x8 --out=pages"
    assert document["latency"][0]["latency"][0]["p50"] == 2.0
    elsewhere = tmp_path_factory.mktemp("outside") / "elsewhere"
    assert cli("bench", model, f"-o{elsewhere}").code == 0
    document = json.loads((elsewhere / "bench.json").read_text(encoding="utf-8"))
    assert document["command"].endswith(" -oelsewhere")

    monkeypatch.setattr("compress.bench.measure", lambda *arguments: pytest.fail("measured"))
    Path("pages/bench.md").write_text("mine", encoding="utf-8")
    code, out, err = cli("bench", model, "-o", "pages")
    assert (code, out) == (2, "")
    assert err == (
        "error: pages/bench.md: is no page of `compress bench` and is not replaced; choose another folder with --out\n"
    )


@pytest.mark.slow
def test_the_tables_name_threads_cpu_time_and_the_floor(cli, model: Path) -> None:
    code, out, err = cli("bench", model, "--shape", "1x8", "--runs", "2", "--profile")
    assert code == 0, err
    *head, first, again = out.splitlines()[:4]
    rest = out.splitlines()[4:]
    for title in ("Model", "Shape", "CPU p50", "Clock p50", "Speed-up"):
        assert title in "\n".join(head)
    assert first.split()[:4] == [f"{model.parent.name}/model.onnx", "1", "×", "8"]
    assert AGAIN in again
    text = "\n".join(rest)
    assert f"{model.parent.name}/model.onnx, 1 × 8, one thread: time by operator" in text
    for words in ("Peak memory", "fp32 matmuls", "attention", "Arithmetic floor", "× their floor", "a whole run"):
        assert words in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shape", "1by8"], "--shape: expected BATCHxLENGTH, two whole numbers such as 1x32; found '1by8'"),
        (["--shape", "0x8"], "--shape: expected BATCHxLENGTH"),
        (["--shape", "1x25"], "takes at most 24 tokens, asked for 25"),
        (
            ["--threads", "some"],
            "--threads: expected a whole number of at least 1 and at most 1024, or all; found 'some'",
        ),
        (["--threads", "0"], "--threads: expected a whole number of at least 1 and at most 1024, or all; found '0'"),
        (["--rigor", "quick", "--runs", "5"], "--runs: expected it without --rigor, which says when to stop"),
        (["--data-dir", "."], "--data-dir: expected --task beside it, found none"),
        (["--task", "toy-sentiment"], "--task toy-sentiment: expected a bundle or a checkpoint"),
        (["--task", "toy-nothing"], "no task 'toy-nothing'"),
        (["no/such.onnx"], "no/such.onnx: no such bundle or file"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(cli, model: Path, options: list[str], message: str) -> None:
    code, out, err = cli("bench", model, *options)
    assert (code, out) == (2, "")
    assert [line for line in err.splitlines() if message in line and line.startswith("error: ")], err
    assert "Traceback" not in err


def test_a_profile_needs_a_model_of_onnx_runtime(cli, tiny_checkpoint, tmp_path: Path) -> None:
    code, out, err = cli("bench", f"torch:{tiny_checkpoint('bert')}", "--profile")
    assert (code, out, err) == (2, "", "error: --profile: expected a model run by ONNX Runtime, found none\n")


def test_a_model_that_has_no_profile_is_refused_before_anything_is_measured(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compress.bench.measure", lambda *arguments: pytest.fail("measured"))
    tensors = [
        numpy_helper.from_array(np.ones((100, 4), np.float32), "table"),
        numpy_helper.from_array(np.array([1]), "axis"),
    ]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("ReduceMean", ["rows", "axis"], ["logits"], keepdims=0),
    ]
    texts = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 4])
    graph = helper.make_graph(nodes, "table", [texts], [logits], tensors)
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), tmp_path / "table.onnx")
    code, out, err = cli("bench", tmp_path / "table.onnx", "--shape", "1x8", "--profile")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "error: --profile: expected a model with matmuls, found 2 operators"


@pytest.mark.parametrize(("control", "busy"), [(1.6, True), (1.02, False)])
def test_a_busy_machine_is_told_below_the_table(
    cli, model: Path, monkeypatch: pytest.MonkeyPatch, control: float, busy: bool
) -> None:
    def runtime(speedup: float) -> Runtime:
        times = {"p50": 1.0, "p90": 1.0, "p99": 1.0, "examples_per_second": 1000.0, "runs": 3}
        row = Latency(batch=1, length=8, **times, speedup=speedup, cpu_p50=1.0, cpu_speedup=1.0)
        return Runtime(latency=(row,), peak_memory_bytes=1, load_ms=1, threads=1)

    measured = {"model": runtime(1.0), AGAIN: runtime(control)}
    monkeypatch.setattr("compress.bench.measure", lambda *arguments: measured)
    code, out, err = cli("bench", model, "--shape", "1x8")
    assert code == 0, err
    warnings = [line for line in out.splitlines() if line.startswith("The machine was busy")]
    assert ["1 × 8" in line for line in warnings] == [True] * busy


def planted_row(control: float) -> dict[str, Runtime]:
    """Return timings of a model and its copy at two shapes; the copy is off by `control` at the first."""

    def row(batch: int, speedup: float, **more: Any) -> Latency:
        times = {"p50": 2.0, "p90": 3.0, "p99": 4.0, "p50_interval": (1.96, 2.04), "p90_interval": (2.9, 3.2)}
        times |= {"examples_per_second": 500.0, "cpu_p50": 2.0, "cpu_speedup": 1.0, "starts": 3}
        return Latency(batch=batch, length=8, speedup=speedup, **times | more)

    def runtime(first: float) -> Runtime:
        rows = (row(1, first, runs=1024, p99_interval=(3.8, 4.5)), row(32, 1.0, runs=36))
        return Runtime(latency=rows, peak_memory_bytes=1, load_ms=1, threads=1)

    return {"model": runtime(1.0), AGAIN: runtime(control)}


@pytest.mark.parametrize(("control", "marks"), [(1.05, 4), (1.02, 0)])
def test_rigor_marks_every_ratio_of_a_shape_whose_control_is_off(
    cli, model: Path, monkeypatch: pytest.MonkeyPatch, control: float, marks: int
) -> None:
    specs = []
    monkeypatch.setattr("compress.bench.measure", lambda _, spec, progress: specs.append(spec) or planted_row(control))
    code, out, err = cli("bench", model, "--shape", "1x8", "--rigor", "quick")
    assert code == 0, err
    assert specs[0].rigor == RIGOR["quick"]
    assert out.count("too noisy") == marks  # two models, two clocks; not the other shape's
    assert out.count("1.96 to 2.04") == 4
    assert out.count("3.80 to 4.50") == 2
    assert "The machine was busy" not in out  # shown from 10%
    cells = [line.split() for line in out.splitlines() if "32 × 8" in line]
    assert [row[-4:-1] for row in cells] == [["3.00", "–", "500"]] * 2  # 36 runs are too few for a p99

    code, out, _ = cli("bench", model, "--shape", "1x8", "--rigor", "full", "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["rigor"], specs[1].rigor) == ("full", RIGOR["full"])
    assert document["too_noisy"] == ([{"threads": 1, "batch": 1, "length": 8}] if marks else [])
    assert document["latency"][0]["latency"][0]["p99_interval"] == [3.8, 4.5]
    assert document["latency"][0]["latency"][1]["p99"] is None


def test_plain_runs_have_the_marks_of_10_percent_alone(cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = []
    monkeypatch.setattr("compress.bench.measure", lambda _, spec, progress: specs.append(spec) or planted_row(1.05))
    code, out, err = cli("bench", model, "--shape", "1x8")
    assert code == 0, err
    assert (specs[0].runs, specs[0].rigor) == (36, None)
    assert "too noisy" not in out
