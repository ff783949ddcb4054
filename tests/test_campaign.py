"""benchmarks/gpu_campaign.py at toy size, as it is called: killed, called again, whole; and the pieces of its bundles."""

from __future__ import annotations

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

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ABSENT = ("datasets", "neural_compressor", "altair", "vl_convert", "sentencepiece")  # of a bare GPU machine


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
