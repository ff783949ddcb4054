"""Other libraries read the same settings from a bundle's folder as bundle.json has; checking a bundle runs no files beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundle_making import failed, reseal
from pydantic import ValidationError

from compress.bundle import read_bundle, verify
from compress.errors import CompressError

pytestmark = pytest.mark.end_to_end


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("tokenizer_config.json", {"model_max_length": 7}, "tokenizer_config.json: model_max_length"),
        ("config.json", {"label2id": {"positive": 0, "negative": 1}}, "config.json: label2id"),
        ("config.json", {"transformers.js_config": {"dtype": "q4"}}, "config.json: transformers.js_config.dtype"),
        ("config.json", {"transformers.js_config": ["q8"]}, "config.json: transformers.js_config.dtype"),
        (
            "config.json",
            {"problem_type": "multi_label_classification"},
            "config.json: the kind of task: expected class",
        ),
    ],
)
def test_what_others_read_agrees(bundle: Path, name: str, fields: dict[str, Any], expected: str) -> None:
    path = bundle / name
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | fields))
    reseal(bundle)
    assert expected in failed(verify(bundle))["settings"]


def test_the_kind_is_that_of_the_graphs(bundle_of: Callable[[str], Path], tmp_path: Path) -> None:
    """A score and a passage's relevance have the same config.json."""
    bundle = Path(shutil.copytree(bundle_of("toy-similarity"), tmp_path / "copy"))
    assert verify(bundle).passed
    reseal(bundle, task=read_bundle(bundle).task.model_copy(update={"kind": "ranking"}))
    expected = "onnx/model.onnx: metadata `kind`: expected ranking, as bundle.json has it; found regression"
    assert failed(verify(bundle))["settings"] == expected


@pytest.mark.parametrize("name", ["README.md", "tokenizer_config.json"])
def test_the_layouts_files_are_there(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    reseal(bundle)
    assert name in failed(verify(bundle))["settings"]


def test_the_fastest_is_one_of_the_models(bundle: Path) -> None:
    with pytest.raises(ValidationError, match="`fastest`"):
        reseal(bundle, fastest="qdq")


def test_files_beside_a_bundle_are_not_run(bundle: Path) -> None:
    """`python -m` would import modules of the current folder instead of Python's own."""
    for name in ("random.py", "onnx.py"):
        (bundle.parent / name).write_text("raise SystemExit('run')")
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-P", "-m", "compress", "verify", bundle.name]
    env = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=bundle.parent, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_a_reader_who_leaves_takes_no_result_away(bundle: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        command = [sys.executable, "-m", "compress", "verify", str(bundle)]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_path_that_onnx_cannot_open_is_named(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x\xff"))
    folder.mkdir()
    with pytest.raises(CompressError, match="not UTF-8"):
        verify(folder)
