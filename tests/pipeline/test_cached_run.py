"""Commands that compute nothing start fast: cached results, plans, lists and reports need no torch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from child_imports import HEAVY, imported
from default_suite import slow
from pretrain_toys import QUICK

from compress.pipeline import BenchSettings, Request, run_all

pytestmark = pytest.mark.end_to_end

LATE = HEAVY | {
    "onnx",
    "onnxruntime",
    "onnxscript",
    "scipy",
    "sklearn",
    "pandas",
    "altair",
    "vl_convert",
    "jinja2",
    "openvino",
}


@pytest.mark.parametrize("timed", [False, *slow(True)])
def test_a_cached_run_a_plan_a_list_and_a_report_import_no_torch(world: Path, timed: bool):
    """The run reads text and writes a report; its result is first assembled again, and then found."""
    task, teacher, text, out = (str(world / name) for name in ("task.yaml", "own.yaml", "text.txt", "runs"))
    request = Request(
        ("bert-pretrain",), (task,), teacher=teacher, corpus=(text,), overrides=QUICK, threads=1, root=Path(out),
        bench=BenchSettings(runs=1) if timed else None,
    )  # fmt: skip
    (result,) = run_all(request)
    file = Path(out) / result.run / "result.json"
    before = json.loads(file.read_text())
    settings = [word for field in QUICK for word in ("--set", field)]
    same = ["bert-pretrain", "--task", task, "--teacher", teacher, "--corpus", text, "--out", out, *settings]
    run = ["run", *same, "--threads", "1", *(("--bench-runs", "1") if timed else ("--no-bench",))]
    file.unlink()
    assert HEAVY & imported(run, ["list", "runs", "-o", out], ["report", out, "-o", f"{out}/r"]) == set()
    assert LATE & imported(run, ["plan", *same]) == set()  # the result and its report exist
    assert json.loads(file.read_text())["models"] == before["models"]
    if not timed:
        _check_that_damaged_files_are_written_again(request, file.parent)


def _check_that_damaged_files_are_written_again(request: Request, folder: Path) -> None:
    for name in ("models.json", "checkpoints.json", "predictions.npz"):
        before = (folder / name).read_bytes()
        for damaged in (None, b"junk", before[:-30]):
            (folder / name).unlink()
            if damaged is not None:
                (folder / name).write_bytes(damaged)
            run_all(request)
            assert len((folder / name).read_bytes()) == len(before), name
