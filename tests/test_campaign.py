"""benchmarks/gpu_campaign.py at toy size, as a command: killed, resumed, complete; and the pieces of its bundles."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compress.bundle import verify
from compress.errors import Interrupted
from compress.processes import signals

pytestmark = pytest.mark.end_to_end

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ABSENT = ("datasets", "neural_compressor", "altair", "vl_convert", "sentencepiece")  # on a bare GPU machine


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("campaign.pieces").cut


def join(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(folder / "join.py")], capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "small.json").write_text("{}")
    return tmp_path


def test_pieces_join_to_the_same_files_and_leave_nothing(cut: Any, folder: Path) -> None:
    assert cut(folder, 1000) == ["onnx/model.onnx"]
    assert [path.stat().st_size for path in sorted((folder / "onnx").iterdir())] == [1000, 1000, 560]
    done = join(folder)
    assert (done.returncode, done.stdout) == (0, "onnx/model.onnx\n")
    assert (folder / "onnx" / "model.onnx").read_bytes() == bytes(range(256)) * 10
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["model.onnx", "small.json"]


def test_a_folder_of_small_files_is_left_alone(cut: Any, folder: Path) -> None:
    assert cut(folder, 4000) == []
    assert not (folder / "join.py").exists()


@pytest.mark.parametrize("harm", ["missing", "altered"])
def test_a_piece_that_is_not_whole_is_named(cut: Any, folder: Path, harm: str) -> None:
    cut(folder, 1000)
    piece = folder / "onnx" / "model.onnx.001"
    piece.unlink() if harm == "missing" else piece.write_bytes(b"x" * 1000)
    done = join(folder)
    assert done.returncode == 1
    assert harm in done.stderr
    assert "model.onnx" in done.stderr
    assert not (folder / "onnx" / "model.onnx").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--task toy-sentiment --task nope", "no task 'nope'"),
        ("--task toy-sentiment --teacher nope", "teacher `nope` is not in the catalogue"),
        ("--task toy-sentiment --corpus absent.txt", "absent.txt: no such file"),
        ("--task toy-sentiment --recipe intt8", "recipe `intt8` is not in the catalogue"),
        ("--task toy-sentiment --set foo.bar=1", "--set foo.bar"),
    ],
)
def test_wrong_input_is_one_line_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, expected: str
) -> None:
    (tmp_path / "text.txt").write_text("the film was long .\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(BENCHMARKS)
    campaign = importlib.import_module("gpu_campaign")
    monkeypatch.setattr(campaign.signals, "install", lambda: None)
    monkeypatch.setattr("sys.argv", ["campaign", *f"--minutes 1 --corpus text.txt --out out {words}".split()])
    assert campaign.main() == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("error: ")
    assert expected in shown.err
    assert len(shown.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function from arguments to the printed lines; `room`: bytes of GPU memory."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    outlook, main = (importlib.import_module(name) for name in ("campaign.outlook", "gpu_campaign"))
    monkeypatch.setattr(outlook.Rates, "_probe", lambda rates, plan: 1e9)
    (tmp_path / "text.txt").write_text("\n\n".join(f"the film of number {n} was long and good ." for n in range(4000)))

    def lines(words: str, room: float = 80e9) -> list[str]:
        monkeypatch.setattr(outlook, "_room", lambda: room)
        fixed = f"--teacher bert-mini --corpus {tmp_path / 'text.txt'} --task toy-sentiment --out {tmp_path / 'out'}"
        return list(outlook.outlook(main.parsed([*fixed.split(), *words.split()])))

    return lines


def test_what_will_be_done_is_said_in_order(planned: Any, tmp_path: Path) -> None:
    first, pretraining, _, *rows, last = planned("--minutes 600 --recipe distilbert --recipe int8 --probe-steps 3")
    assert first.startswith("campaign: 600 minutes on ") and first.endswith("80 GB of memory")
    assert "a probe of 3 steps" in pretraining and "sequences" in pretraining
    assert [row.split(":")[0].strip() for row in rows] == ["distilbert toy-sentiment", "int8 toy-sentiment"]
    assert "GB" in rows[0]
    assert rows[1].endswith("nothing left to train"), "its teacher is the one of the row before"
    assert last.startswith("bundles: ")
    assert not any("LIKELY" in row for row in rows)
    assert not (tmp_path / "out").exists()


def test_what_will_not_fit_is_named(planned: Any) -> None:
    late = planned("--minutes 0.01 --recipe int8")
    assert late[3].endswith("LIKELY OUT OF TIME")
    (advice,) = (line for line in late if "would do" in line)
    enough = planned(f"--minutes {advice.split()[1]} --recipe int8")
    assert not any("LIKELY OUT OF TIME" in line for line in enough)
    assert "LIKELY OUT OF MEMORY" in planned("--minutes 600 --recipe int8 --no-pretrain", room=1e6)[3]
    refused = planned("--minutes 600 --recipe distilbert --recipe int8 --no-pretrain --set distill.enabled=false")[3]
    assert refused.startswith("  distilbert toy-sentiment: WILL FAIL: ")


def test_what_was_done_before_is_not_planned_again(
    planned: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also with other minutes; other settings are planned again."""
    state, steps, main = (
        importlib.import_module(name) for name in ("campaign.state", "campaign.steps", "gpu_campaign")
    )
    probed = {"sequence_length": 32, "tokens_per_second": 1000.0, "sequences": 100}
    monkeypatch.setattr(state.Campaign, "_run", lambda *what: ("done", probed, None))
    fixed = f"--teacher bert-mini --corpus {tmp_path / 'text.txt'} --task toy-sentiment --out {tmp_path / 'out'}"
    campaign = state.Campaign(main.parsed(f"{fixed} --minutes 600 --recipe int8".split()))
    steps.run_recipes(campaign, steps.pretrained_teacher(campaign))
    _, pretraining, _, first, second, _ = planned("--minutes 6000 --recipe int8 --recipe distilbert")
    assert pretraining == "pre-training of bert-mini: nothing left to train"
    assert first.endswith("int8 toy-sentiment: nothing left to train")
    assert " steps, " in second
    _, pretraining, _, first, _ = planned("--minutes 6000 --recipe int8 --set pretrain.learning_rate=1e-3")
    assert "a probe of" in pretraining and " steps, " in first


@pytest.mark.slow
def test_a_dry_run_prints_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the film was long .\n" * 400)
    words = (
        "--minutes 1000 --teacher bert-mini --corpus text.txt --task toy-sentiment --recipe int8 --out out --dry-run"
    )
    words += " --set pretrain.batch_size=4 --set pretrain.max_length=32"
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "gpu_campaign.py"), *words.split()],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(" ")[0] for line in done.stdout.splitlines() if line[0] != " "] == [
        "campaign:", "pre-training", "recipes,", "bundles:",
    ]  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_recipes_are_run_again_where_their_teacher_was_pretrained_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    state, steps = (importlib.import_module(f"campaign.{name}") for name in ("state", "steps"))
    started: list[str] = []

    def run(campaign: Any, name: str, work: str, what: Any, limit: float) -> Any:
        started.append(name)
        probed = {"sequence_length": 32, "tokens_per_second": 1000.0, "sequences": 100}
        return "done", probed, None

    monkeypatch.setattr(state.Campaign, "_run", run)
    for rate in ("1e-3", "1e-3", "2e-3"):
        arguments = argparse.Namespace(
            minutes=5, share=0.5, teacher="bert-mini", corpus=["t"], task=["toy-sentiment"], recipe=["int8"],
            set=[f"pretrain.learning_rate={rate}"], no_pretrain=False, probe_steps=2, precision=None, data_dir=None, out=tmp_path,
        )  # fmt: skip
        campaign = state.Campaign(arguments)
        steps.run_recipes(campaign, steps.pretrained_teacher(campaign))
        assert campaign.complete
    assert started == ["probe", "pretrain", "int8 toy-sentiment"] * 2


@pytest.mark.slow
def test_a_campaign_that_is_told_to_stop_takes_its_step_along(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n\n".join(f"the film of number {n} was long and good ." for n in range(400)))
    process = start(tmp_path)
    log = tmp_path / "out" / "logs" / "probe.log"
    until = time.monotonic() + 240
    while time.monotonic() < until and not log.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 143
    assert err.splitlines()[-1].startswith("error: interrupted")
    assert _is_gone(process.pid, seconds=10.0)


def test_a_step_that_is_just_starting_is_taken_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    state = importlib.import_module("campaign.state")
    started = []

    class Starting(subprocess.Popen[bytes]):
        def __init__(self, *_: object, **__: object) -> None:
            super().__init__([sys.executable, "-c", "import time; time.sleep(600)"])
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)  # before the caller has the process object

    monkeypatch.setattr(state.subprocess, "Popen", Starting)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        signals.install()
        with pytest.raises(Interrupted), (tmp_path / "log").open("a") as log:
            state._carried_out(["a step"], log, 600.0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    (process,) = started
    assert process.returncode == -signal.SIGTERM


def _is_gone(group: int, *, seconds: float) -> bool:
    """Whether no process of the group is left; a zombie counts until init reaps it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def start(world: Path) -> subprocess.Popen[str]:
    (world / "bare").mkdir(exist_ok=True)
    for name in ABSENT:
        (world / "bare" / f"{name}.py").write_text(f"raise ModuleNotFoundError('no {name} here', name='{name}')\n")
    words = (
        "--minutes 10 --share 0.01 --teacher bert-mini --corpus text.txt --task toy-sentiment --recipe int8 --out out"
    )
    words += " --probe-steps 2 --piece-mib 0.25 --set pretrain.batch_size=4 --set pretrain.max_length=32"
    words += " --set finetune.max_steps=4 --set quantize.method=dynamic"
    return subprocess.Popen(
        [sys.executable, str(BENCHMARKS / "gpu_campaign.py"), *words.split()],
        cwd=world,
        env=os.environ | {"PYTHONPATH": f"{world / 'bare'}{os.pathsep}{BENCHMARKS.parent}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_a_killed_campaign_goes_on_and_comes_to_a_bundle_that_verifies(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n\n".join(f"the film of number {n} was long and good ." for n in range(400)))
    first = start(tmp_path)
    state = tmp_path / "out" / "campaign.json"
    until = time.monotonic() + 240
    while time.monotonic() < until and not (state.exists() and "probe" in json.loads(state.read_text())["steps"]):
        assert first.poll() is None, first.communicate()[1]
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    probe = json.loads(state.read_text())["steps"]["probe"]

    out, err = start(tmp_path).communicate(timeout=400)
    assert out == "out/campaign.md\n", err
    document = json.loads(state.read_text())
    assert document["steps"]["probe"] == probe, "made again"
    assert [step["state"] for step in document["steps"].values()] == ["done"] * 4, err
    page = (tmp_path / "out" / "campaign.md").read_text()
    assert "| int8 toy-sentiment | done |" in page
    assert "perplexity" in page
    assert ("without a GPU" in page) == (document["machine"]["gpu"] is None)
    (bundle,) = (tmp_path / "out" / "bundles").iterdir()
    assert join(bundle).returncode == 0
    report = verify(bundle)
    assert report.passed, report
