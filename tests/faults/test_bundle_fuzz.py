"""Damaged bundles through `verify` and `predict`: an answer or one clean error line; crashes stay in the child process."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from bundle_cases import GRAPHS, LONGEST, cases, damaged
from bundle_making import make_run

from compress.bundle import ship
from compress.bundle.document import read_bundle
from compress.errors import CheckFailed, CompressError
from compress.processes.worker import Worker, environment

pytestmark = pytest.mark.end_to_end

CHILD = Path(__file__).parents[1] / "support" / "bundle_child.py"
SECONDS = 60.0  # for one answer


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fuzz")
    run = make_run(root / "run")
    return ship(run.folder, root / "out", store=run.store)


def _fuzz(whole: Path, folder: Path, seed: int, count: int) -> dict[str, int]:
    """Return the count of each outcome; fail on anything but a clean error."""
    shutil.copytree(whole, folder)
    info, counts = read_bundle(whole), {"answered": 0, "refused": 0, "crashed": 0}
    worker: Worker | None = None
    bad: list[str] = []
    try:
        for damage, name, data in cases(whole, seed, count):
            damaged(whole, folder, info, name, data)
            for do, arguments in (("verify", {}), ("predict", {"name": name})):
                worker = worker or Worker([sys.executable, str(CHILD)], environment(1), SECONDS)
                try:
                    outcome = worker.ask(do, folder=str(folder), **arguments)
                except CheckFailed as error:  # the process died or was stopped: for `verify` a failed check
                    worker.__exit__()
                    worker = None
                    counts["crashed"] += 1
                    if name not in GRAPHS or do == "predict":
                        bad.append(f"{damage}: {do}: {error}"[:500])
                    continue
                except CompressError as error:  # an exception other than CompressError: a traceback
                    bad.append(f"{damage}: {do}: {error}"[:500])
                    continue
                counts["refused" if outcome else "answered"] += 1
                lines = [outcome] if isinstance(outcome, str) else outcome or []
                bad += [f"{damage}: {do}: {line[:300]!r}" for line in lines if "\n" in line or len(line) > LONGEST]
    finally:
        if worker is not None:
            worker.__exit__()
    assert not bad, f"{len(bad)} of {count}:\n" + "\n".join(bad[:60])
    return counts


def test_damaged_bundles_are_answered_or_refused_cleanly(whole: Path, tmp_path: Path) -> None:
    counts = _fuzz(whole, tmp_path / "damaged", seed=24, count=30)
    assert counts["refused"] > 20


@pytest.mark.slow
def test_ten_thousand_damaged_bundles(whole: Path, tmp_path: Path) -> None:
    counts = _fuzz(whole, tmp_path / "damaged", seed=1, count=10_000)
    assert counts["refused"] > 10_000
    assert counts["answered"] > 100
