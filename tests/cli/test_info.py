"""`list`, `doctor`, `plan` and `--help`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundle_making import make_run

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names


@pytest.mark.parametrize("kind", ["recipes", "teachers", "students", "tasks"])
def test_list_shows_every_card(cli: Cli, kind: str) -> None:
    from compress.catalog import names
    from compress.tasks import BUILTIN_TASKS

    code, out, _ = cli("list", kind, "--json")
    assert code == 0
    expected = BUILTIN_TASKS if kind == "tasks" else names(kind)  # type: ignore[arg-type]
    assert [next(iter(row.values())) for row in json.loads(out)] == list(expected)
    code, table, _ = cli("list", kind)
    assert all(name in table for name in expected)


def test_list_runs_names_a_broken_one_and_goes_on(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "result.json").write_text("{")
    code, printed, error = cli("list", "runs", "-o", tmp_path)
    assert (code, printed) == (0, f"no finished runs in {tmp_path}\n")
    assert error.startswith(f"note: {tmp_path}/broken/result.json")


def test_list_runs_leaves_out_the_copy_in_a_report(cli: Cli, tmp_path: Path) -> None:
    from compress.results import read_results, write_result

    here, gone, *_ = read_results(Path(__file__).parents[2] / "reports" / "glue-minilm" / "results.json")
    for name, run in ((here.run, here), ("report", here), ("report-of-another", gone)):
        (tmp_path / name).mkdir()
        write_result(run, tmp_path / name)
    listed = json.loads(cli("list", "runs", "-o", tmp_path, "--json").out)
    assert [row["run"] for row in listed] == [here.run, gone.run]


def test_list_gives_programs_numbers(cli: Cli, tmp_path: Path) -> None:
    from compress.results import read_result

    run = make_run(tmp_path).folder
    code, out, _ = cli("list", "runs", "-o", run.parent, "--json")
    (row,), final = json.loads(out), read_result(run).final
    assert code == 0
    assert (row["seed"], row["score"], row["MB"]) == (0, final.headline, final.file_bytes / 1e6)
    assert isinstance(row["teacher"], float)
    table = cli("list", "runs", "-o", run.parent).out
    assert f" {final.headline:.2f} " in table
    assert f" {final.file_bytes / 1e6:.1f} " in table
    students = {row["student"]: row["layers"] for row in json.loads(cli("list", "students", "--json").out)}
    assert (students["tiny-2l"], students["minilm-l6"]) == (2, None)


def test_list_runs_of_an_empty_folder(cli: Cli, tmp_path: Path) -> None:
    assert cli("list", "runs", "-o", tmp_path) == (0, f"no finished runs in {tmp_path}\n", "")


def test_doctor_warns_of_a_cpu_without_vnni(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from compress.cli import advice

    monkeypatch.setattr(advice, "saturates", lambda: True)
    assert "note: this CPU has no VNNI" in cli("doctor").out
    monkeypatch.setattr(advice, "saturates", lambda: False)
    assert "note: this CPU has no VNNI" not in cli("doctor").out
    assert json.loads(cli("doctor", "--json").out)["versions"]["torch"]


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", "avx avx2", "about 1.6-2 times as fast as fp32 (measured with AVX2"),
        ("x86_64", "avx2 avx512f", "which saturate"),
        ("x86_64", "sse4_1", "no AVX2"),
        ("AMD64", "avx2 avx_vnni", "about 2.0-3.3 times as fast as fp32"),
        ("x86_64", "avx2 avx512f avx512_vnni amx_int8", "with and without AMX"),
        ("aarch64", "asimd asimddp i8mm", "not measured: Arm i8mm"),
        ("aarch64", "asimd asimddp", "not measured: Arm dotprod"),
        ("aarch64", "asimd", "no instruction for int8 matmuls"),
    ],
)
def test_doctor_predicts_what_int8_gains(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, machine: str, flags: str, expected: str
) -> None:
    from compress import machine as here

    monkeypatch.setattr(here, "_cpu", lambda: ("A CPU", frozenset(flags.split())))
    monkeypatch.setattr(here.platform, "machine", lambda: machine)
    line = next(line for line in cli("doctor").out.splitlines() if line.startswith("int8 "))
    assert expected in line


def test_doctor_measures_where_it_is_asked_to(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from compress.bench import floor

    monkeypatch.setattr(floor, "SECONDS", 0.01)
    assert "times as fast; a whole model gains less" in cli("doctor", "--measure").out
    rates = json.loads(cli("doctor", "--measure", "--json").out)["macs_per_second"]
    assert rates.keys() == {"int8", "fp32"}
    assert min(rates.values()) > 0
    assert "macs_per_second" not in json.loads(cli("doctor", "--json").out)


def test_doctor_warns_of_an_old_version(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from compress.cli import advice

    monkeypatch.setattr(advice, "versions", lambda: {"torch": "2.10.1+cpu", "onnx": "1.23.0"})
    assert [line for line in advice.advice() if "older than" in line] == [
        "torch 2.10.1+cpu is older than 2.11, the oldest that is known to work"
    ]


def test_plan_computes_nothing_and_says_what_would_run(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    arguments = ("plan", "distilbert", "--task", "toy-sentiment", "--teacher", "bert-mini", "--out", out)
    code, printed, _ = cli(*arguments, "--json", "--set", "distill.epochs=7")
    assert code == 0
    (plan,) = json.loads(printed)
    stages = {stage["stage"]: stage for stage in plan["stages"]}
    assert list(stages) == [
        "finetune teacher", "export teacher-fp32", "distill student", "export student-fp32", "quantize student-int8"
    ]  # fmt: skip
    assert stages["distill student"]["settings"]["epochs"] == 7
    assert not any(stage["cached"] for stage in plan["stages"])
    assert plan["copied_layers"] == [0]
    assert plan["models"]["student"]["parameters"] < plan["models"]["teacher"]["parameters"]
    assert "distil-1l" in cli(*arguments).out
    assert not out.exists()


def test_a_plan_names_the_options_that_change_nothing_of_it(cli: Cli, tmp_path: Path) -> None:
    arguments = ("plan", "int8", "--task", "toy-sentiment", "--teacher", "bert-mini", "--out", tmp_path / "runs")
    plain = cli(*arguments, "--json", "--quiet", "--jobs", 2)
    assert plain.code == 0 and plain.err == ""
    more = ("--max-size-mb", 3, "--threads", 1, "--no-bench", "--report", tmp_path / "report")
    noted = cli(*arguments, "--json", *more)
    assert noted.out == plain.out and noted.err == (
        "note: --max-size-mb, --threads, --no-bench and --report matter to `run` alone: checked, and without effect on what a plan shows\n"
    )
    assert cli(*arguments, "--bench-runs", 8).err.startswith("note: --bench-runs matters to `run` alone")


def test_a_plan_shows_the_candidates_of_a_choice_and_their_steps(cli: Cli, tmp_path: Path) -> None:
    rates = ("--set", "finetune.learning_rate=[1e-4, 2e-4]", "--set", "finetune.batch_size=100")
    arguments = ("plan", "int8", "--task", "toy-sentiment", "--teacher", "bert-mini", "-o", tmp_path / "runs", *rates)
    (plan,) = json.loads(cli(*arguments, "--json").out)
    names = ["finetune teacher-lr0.0001", "finetune teacher-lr0.0002", "choose teacher"]
    stages = {stage["stage"]: stage["settings"] for stage in plan["stages"]}
    assert [*stages][:3] == names
    assert [stages[name]["learning_rate"] for name in names] == [1e-4, 2e-4, [1e-4, 2e-4]]
    steps = plan["training"]["steps"]
    assert [*steps] == names[:2] and len({*steps.values()}) == 1
    printed = cli(*arguments).out
    assert f"training: {sum(steps.values())} steps" in printed
    assert "learning_rate [0.0001, 0.0002]" in printed and "the best on the tuning split is chosen" in printed


def test_a_plan_on_a_gpu_that_computes_bf16_trains_in_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from compress import machine

    monkeypatch.setattr(machine, "has_gpu_driver", lambda: True)
    keys, toy = {}, ("--teacher", "bert-mini", "--task", "toy-sentiment")
    for bf16, precision in ((True, "bf16"), (False, "fp32")):
        monkeypatch.setattr(machine, "_gpu_bf16", lambda bf16=bf16: bf16)
        for words in ((), ("--precision", precision)):
            (plan,) = json.loads(cli("plan", "int8", *toy, "-o", tmp_path, "--json", *words).out)
            assert plan["precision"] == precision
            keys.setdefault(precision, set()).add(plan["stages"][0]["key"])
        assert json.loads(cli("doctor", "--json").out)["training_precision"] == precision
        assert "training   on " in (shown := cli("doctor").out) and "on the CPU" not in shown
    assert {precision: len(stage_keys) for precision, stage_keys in keys.items()} == {"bf16": 1, "fp32": 1}
    assert keys["bf16"] != keys["fp32"]


def test_a_gpu_that_torch_does_not_see_trains_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from compress import machine

    words = ("int8", "--teacher", "bert-mini", "--task", "toy-sentiment", "-o", tmp_path)
    monkeypatch.setattr(machine, "has_gpu_driver", lambda: True)
    monkeypatch.setattr("compress.cli.advice.has_gpu_driver", lambda: True)
    monkeypatch.setattr(machine, "_gpu_bf16", lambda: None)
    assert json.loads(cli("plan", *words, "--json").out)[0]["training"]["device"] == "cpu"
    assert "this machine has" in " ".join(cli("plan", *words).out.split()), "the memory of the machine, not of the GPU"
    for cuda, remedy in ((None, "install PyTorch's CUDA build"), ("13.0", "update the driver to one for CUDA 13.0")):
        monkeypatch.setattr("torch.version.cuda", cuda)
        shown = cli("doctor").out
        assert "training   on the CPU; --precision auto is" in shown
        assert "sees no GPU: training uses the CPU" in shown
        assert remedy in shown


def test_a_plan_says_where_an_interrupted_training_goes_on(cli: Cli, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    out = tmp_path / "runs"
    arguments = ("plan", "distilbert", "--task", "toy-sentiment", "--teacher", "bert-mini", "--out", out)
    keys = {stage["stage"]: stage["key"] for stage in json.loads(cli(*arguments, "--json").out)[0]["stages"]}
    folder = out / ".store" / ".building" / keys["finetune teacher"] / "work" / "state"
    folder.mkdir(parents=True)
    file = folder / "state.safetensors"
    save_file({"x": np.zeros(1)}, file, metadata={"progress": json.dumps({"step": 31})})
    steps = {stage["stage"]: stage["saved_step"] for stage in json.loads(cli(*arguments, "--json").out)[0]["stages"]}
    assert {name: step for name, step in steps.items() if step is not None} == {"finetune teacher": 31}
    assert "to continue, step 31" in cli(*arguments).out
    file.write_bytes(file.read_bytes()[:40])  # damaged: training restarts
    assert "to go on" not in cli(*arguments).out


def test_an_override_changes_only_the_keys_that_depend_on_it(cli: Cli, tmp_path: Path) -> None:
    arguments = (
        "plan",
        "distilbert",
        "--task",
        "toy-sentiment",
        "--teacher",
        "bert-mini",
        "-o",
        tmp_path / "r",
        "--json",
    )

    def keys(*more: str) -> dict[str, str]:
        return {stage["stage"]: stage["key"] for stage in json.loads(cli(*arguments, *more).out)[0]["stages"]}

    before, after = keys(), keys("--set", "distill.epochs=9")
    changed = {stage for stage in before if before[stage] != after[stage]}
    assert changed == {"distill student", "export student-fp32", "quantize student-int8"}
    assert all(before[stage] != key for stage, key in keys("--seed", "1").items())


def test_recipes_that_share_a_teacher_share_its_key(cli: Cli, tmp_path: Path) -> None:
    arguments = ("--task", "toy-sentiment", "--teacher", "bert-mini", "-o", tmp_path / "r", "--json")
    first, second = json.loads(cli("plan", "distilbert", "int8", *arguments).out)
    assert first["stages"][0]["key"] == second["stages"][0]["key"]


def test_help_and_version_need_no_heavy_import() -> None:
    code = (
        "import sys; sys.argv = ['compress', '--help']\n"
        "from compress.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'onnx', 'onnxruntime', 'numpy', 'pydantic', 'altair', 'pandas'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "predict" in done.stdout


def test_an_override_of_a_stage_is_for_the_recipes_that_have_it(cli: Cli, tmp_path: Path) -> None:
    arguments = ("--task", "toy-sentiment", "--teacher", "bert-mini", "-o", tmp_path / "r", "--json")
    code, out, _ = cli("plan", "distilbert", "int8", "int8", *arguments, "--set", "distill.epochs=2")
    assert code == 0
    first, second = json.loads(out)  # a recipe named twice is one run
    assert (first["recipe"], second["recipe"]) == ("distilbert", "int8")
    assert first["stages"][2]["settings"]["epochs"] == 2
    code, _, error = cli("plan", "distilbert", "int8", *arguments, "--set", "augment.copies=2")
    assert code == 2
    assert "augment" in error


def test_a_folder_does_not_stand_in_for_a_card_of_its_name(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert-mini").mkdir()
    assert cli("plan", "int8", "--task", "toy-sentiment", "--teacher", "bert-mini").code == 0
    code, _, error = cli("plan", "int8", "--task", "toy-sentiment", "--teacher", "./bert-mini")
    assert code == 2
    assert "config.json" in error
