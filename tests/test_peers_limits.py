"""benchmarks/peers: variants this CPU does not support are left out with the reason, hanging ones are killed, telemetry is off."""

from __future__ import annotations

import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from compress.processes.children import run

PEERS = Path(__file__).parents[1] / "benchmarks/peers"


def test_openvino_s_telemetry_is_off_in_every_child(peers: Any, tmp_path: Path) -> None:
    """Queries openvino itself, as convert_model and NNCF set it up, for a user without a recorded consent."""
    code = "from openvino.tools.ovc.telemetry_utils import init_ovc_telemetry as telemetry; print(telemetry().consent)"
    variables = peers("process")._variables(Path(sys.executable), 1, ours=False)
    for expected, less in (("False", {}), ("True", {"CI": ""})):
        home = tmp_path / expected
        home.mkdir()
        environment = {**variables, "HOME": str(home), **less}
        assert run([sys.executable, "-c", code], 120, environment=environment) == f"{expected}\n"


def test_an_environment_that_hangs_is_given_up(peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer is left out, with the reason in a line; the others are measured."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nsleep 600\n")
    program.chmod(0o755)
    environments, candidates = peers("environments"), peers("candidates")
    monkeypatch.setattr(environments.sys, "executable", str(program))
    monkeypatch.setattr(environments, "_SECONDS", 0.2)
    pythons, missing = candidates.interpreters(["pytorch"], tmp_path / "environments", lambda *words: None)
    assert list(pythons) == [candidates.OURS]
    assert {*missing} == {*peers("pytorch").VARIANTS}
    assert all(reason.startswith("no environment: ") for reason in missing.values())
    assert "did not end within 0.2 s" in missing["PyTorch eager"]


@pytest.fixture
def hanging(tmp_path: Path) -> Path:
    """Write an interpreter that starts a process, writes both ids into `pids`, and never answers."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nsleep 600 &\necho $$ $! > {tmp_path}/pids\nwait\n")
    program.chmod(0o755)
    return program


def assert_gone(file: Path) -> None:
    """Wait until the processes are gone, which may take a moment on a busy machine."""
    left, deadline = [*map(int, file.read_text().split())], time.monotonic() + 20
    while left := [
        pid for pid in left if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_conversion_that_hangs_is_killed_and_listed(peers: Any, tmp_path: Path, hanging: Path) -> None:
    candidates = peers("candidates")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/model.safetensors").write_bytes(b"weights")
    variants, failed = candidates.convert_all(tmp_path, {"ctranslate2_int8": hanging}, lambda *words: None, seconds=1)
    assert variants == []
    assert failed.keys() == {"CTranslate2 int8"}
    assert "no answer in 1 s to `convert`" in failed["CTranslate2 int8"]
    assert_gone(tmp_path / "pids")


PEER = """
import os, time
import numpy as np
PACKAGES = ("numpy",)
def load(variant, out, threads):
    def predict(ids, mask):
        if variant == "hangs" and len(ids) == 1:
            open(out / "pids", "w").write(str(os.getpid()))
            time.sleep(600)
        return np.stack([np.zeros(len(ids)), np.linspace(-1, 1, len(ids))], 1)
    return predict
"""
STARTS = """
import os
import numpy as np
PACKAGES = ("numpy",)
def load(variant, out, threads):
    with open(out / "pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    if variant == "once" and (out / "seen").exists():
        raise ValueError("loads once")
    if variant == "once":
        (out / "seen").touch()
    return lambda ids, mask: np.stack([np.zeros(len(ids)), np.linspace(-1, 1, len(ids))], 1)
"""


def test_a_candidate_that_hangs_is_killed_and_the_others_are_measured(
    peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs real processes: one answers at first, then never again."""
    candidates, measuring, inputs = peers("candidates"), peers("measuring"), peers("inputs")
    for name in ("child.py", "inputs.py"):
        shutil.copy(PEERS / name, tmp_path)
    (tmp_path / "toy.py").write_text(PEER)
    start = partial(peers("process").start, program=tmp_path / "child.py")
    monkeypatch.setattr(candidates, "start", start)
    monkeypatch.setattr(measuring, "CELLS", {"1x32": (1,)})
    names = ("mine", "hangs")
    listed = [candidates.Candidate(name, "toy", Path(sys.executable), tmp_path) for name in names]
    count = len(inputs.checked().ids)
    reference = np.stack([np.zeros(count), np.linspace(-1, 1, count)], 1)
    head = peers("heads").HEADS["classification"]
    cell = measuring._cell

    def impatient(children: Any, *arguments: Any) -> Any:  # set only now, because a busy machine starts them slowly
        assert children.running["hangs"].timeout == 60
        children.running["hangs"].timeout = 0.3
        return cell(children, *arguments)

    monkeypatch.setattr(measuring, "_cell", impatient)
    measurement = measuring.measure(listed, head, reference, 1, 1, lambda *words: None, seconds=60)
    assert measurement["cells"]["1x32"].keys() == {"mine", measuring.AGAIN}
    assert "no answer in 0.3 s to `run`" in measurement["failed"]["hangs"]
    assert_gone(tmp_path / "pids")
    assert "* **hangs**: no answer in 0.3 s to `run`" in peers("report")._missing(measurement["failed"])


@pytest.mark.parametrize("flags", [("avx2", "avx512_vnni"), ("avx2", "avx512_bf16")])
def test_bf16_is_measured_where_the_cpu_has_it_and_said_where_not(
    peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    candidates = peers("candidates")
    monkeypatch.setattr(candidates, "isa", lambda: flags)
    monkeypatch.setattr(candidates, "_convert", lambda *_: None)
    pythons = {peer: Path(sys.executable) for peer in ("openvino_nncf", "pytorch")}
    variants, failed = candidates.convert_all(tmp_path, pythons, lambda *words: None)
    bf16 = {*peers("openvino_nncf").NEEDS_BF16, *peers("pytorch").NEEDS_BF16}
    assert len(bf16) == 4
    has = "avx512_bf16" in flags
    assert failed == ({} if has else dict.fromkeys(failed, candidates.NO_BF16))
    assert {*failed} == (set() if has else bf16)
    assert bf16 <= {candidate.name for candidate in variants} if has else bf16.isdisjoint(c.name for c in variants)


def test_every_start_has_processes_of_its_own(peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that fails in a later start is dropped; the others have rounds from all starts."""
    candidates, measuring, inputs = peers("candidates"), peers("measuring"), peers("inputs")
    for name in ("child.py", "inputs.py"):
        shutil.copy(PEERS / name, tmp_path)
    (tmp_path / "toy.py").write_text(STARTS)
    monkeypatch.setattr(candidates, "start", partial(peers("process").start, program=tmp_path / "child.py"))
    monkeypatch.setattr(measuring, "CELLS", {"1x32": (1,)})
    listed = [candidates.Candidate(name, "toy", Path(sys.executable), tmp_path) for name in ("mine", "once")]
    count = len(inputs.checked().ids)
    reference = np.stack([np.zeros(count), np.linspace(-1, 1, count)], 1)
    head = peers("heads").HEADS["classification"]
    measurement = measuring.measure(listed, head, reference, 1, 2, lambda *words: None, seconds=60, starts=3)
    cell = measurement["cells"]["1x32"]
    assert {name: len(each["samples"]) for name, each in cell.items()} == dict.fromkeys(
        ("mine", measuring.AGAIN), 2 * 3 * 5
    )
    assert "once" in measurement["failed"]
    assert len((tmp_path / "pids").read_text().split()) == 3 * 2 + 2
