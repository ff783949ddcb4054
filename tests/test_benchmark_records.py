"""Every benchmark that prints a table can write its raw figures, with the code, the script and the machine."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compress.provenance import Code, running_code
from compress.results import Machine

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
# The helper; the recomputation of intervals, which measures nothing; the campaign, whose raw figures are in campaign.json.
OTHERS = ("records.py", "intervals.py", "gpu_campaign.py")
SCRIPTS = sorted(path.name for path in BENCHMARKS.glob("*.py") if path.name not in OTHERS)


def run(script: str, *words: str, cwd: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    command = [sys.executable, str(BENCHMARKS / script), *words]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def calls(script: str) -> set[str]:
    tree = ast.parse((BENCHMARKS / script).read_text(encoding="utf-8"))
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_has_the_option_writes_and_says_the_code(script: str) -> None:
    assert {"add_json", "write_json", "code_line"} <= calls(script)


def test_the_raw_figures_say_what_they_were_measured_by(tmp_path: Path) -> None:
    page = run("products.py", "--size", "8x8", "--json", str(tmp_path / "out" / "raw.json"), cwd=tmp_path)
    document = json.loads((tmp_path / "out" / "raw.json").read_text())
    assert f"Code: {running_code()}" in page
    assert Code.model_validate(document["code"]) == running_code()
    assert document["script"] == {
        "name": "products.py",
        "sha256": hashlib.sha256((BENCHMARKS / "products.py").read_bytes()).hexdigest(),
    }
    assert document["command"] == "python benchmarks/products.py --size 8x8 --json out/raw.json"
    assert Machine.model_validate(document["machine"])
    assert document["versions"]["onnxruntime"]
    rows = document["measured"]
    assert [(row["tokens"], row["in"], row["out"]) for row in rows] == [(tokens, 8, 8) for tokens in (32, 128, 4096)]
    assert all(len(times) == 15 for row in rows for times in row["microseconds"].values())
    first = sorted(rows[0]["microseconds"]["fp32"])[7]
    assert f"| 32 × 8 by 8 × 8 | {first:.0f} (1.00×) |" in page
    assert str(tmp_path) not in json.dumps(document)


def test_without_the_option_nothing_is_written(tmp_path: Path) -> None:
    assert "µs" in run("products.py", "--size", "8x8", cwd=tmp_path)
    assert not list(tmp_path.iterdir())
