"""A graph that crashes or hangs the process that opens it is a failed check; `verify` itself survives."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundle_making import Run, failed

from compress.bundle import ship, verify
from compress.bundle.verifying import isolated

INSTEAD = """
import os, signal, time
import onnxruntime

def instead(*_, **__):
    {}

onnxruntime.InferenceSession = instead
"""


def _every_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    """Replace sessions in the processes started from now on."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(INSTEAD.format(does))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "first"))


@pytest.mark.usefixtures("apart")
def test_a_sound_bundle_passes_in_a_process_of_its_own_and_the_command_says_so(run: Run, tmp_path: Path) -> None:
    report = verify(ship(run.folder, tmp_path / "out", store=run.store), task="toy-sentiment", threads=1)
    assert report.passed, report
    assert [check.name for check in report.checks][-3:] == ["int8 against fp32", "scores fp32", "scores int8"]


@pytest.mark.usefixtures("apart")
def test_a_crash_is_a_failed_check_that_names_the_file(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _every_session(tmp_path, monkeypatch, "os.kill(os.getpid(), signal.SIGSEGV)")
    failures = failed(verify(bundle))
    assert list(failures) == ["labels"]
    assert failures["labels"].startswith(f"{bundle}/config.json: its process died (signal 11)")


@pytest.mark.slow
@pytest.mark.usefixtures("apart")
def test_a_graph_that_never_answers_is_stopped(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _every_session(tmp_path, monkeypatch, "time.sleep(1000)")
    monkeypatch.setattr(isolated, "_SECONDS", 30.0)
    monkeypatch.setattr(isolated, "_SECONDS_OF_A_CHECK", 4.0)
    assert "no answer in 4 s" in failed(verify(bundle))["labels"]
