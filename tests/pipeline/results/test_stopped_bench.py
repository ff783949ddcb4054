"""A failed latency measurement loses no training."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_runs import TASK, TEACHER

import compress.bench
from compress.errors import CheckFailed
from compress.pipeline import BenchSettings, Request, run_all


@pytest.mark.slow
def test_the_stages_before_are_kept_and_the_message_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.yaml").write_text(TEACHER)
    (tmp_path / "tiny-task.yaml").write_text(TASK)

    def busy(*arguments: object) -> None:
        raise CheckFailed("bench: teacher-fp32: no answer in 600 s to `load`")

    def run(bench: BenchSettings | None) -> None:
        run_all(
            Request(
                ("int8",), (str(tmp_path / "tiny-task.yaml"),), teacher=str(tmp_path / "tiny.yaml"), threads=1,
                root=tmp_path / "runs", bench=bench, overrides=("quantize.method=dynamic",),
            )
        )  # fmt: skip

    monkeypatch.setattr(compress.bench, "measure", busy)
    with pytest.raises(CheckFailed, match=r"no answer in 600 s.*; finished stages are kept: .* --no-bench"):
        run(BenchSettings(runs=1))
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs" / ".store").iterdir() if path.is_dir()}
    run(None)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs" / ".store").iterdir() if path.is_dir()}
    trained = {name for name in kept if not name.startswith(".")}
    assert len(trained) >= 5
    assert {name: after[name] for name in trained} == {name: kept[name] for name in trained}
