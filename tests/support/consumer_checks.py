"""Run programs that use other libraries on a bundle, and compare their results with ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from consumer_bundles import WORDS
from consumer_environments import node_with, python_with

from compress.runtime import Classifier

PROGRAMS = Path(__file__).parents[1] / "consumers" / "programs"
FILES = {"model.onnx": "fp32", "model_quantized.onnx": "int8", "model_qdq.onnx": "qdq"}
JS_FILES = ["model.onnx", "model_quantized.onnx"]  # the files that transformers.js has a name for
JS_VERSIONS = ["3", "4"]
OPTIMUM, SENTENCE_TRANSFORMERS = "optimum-onnx[onnxruntime]", "sentence-transformers[onnx]"
TEXTS = [" ".join(WORDS[(start + step * each) % len(WORDS)] for each in range(1 + start % 9)) for start, step in
         ((number, 1 + number % 5) for number in range(20))]  # fmt: skip
# Shares of the logits' range: fp32 sums in another order; int8 values may round the other way.
FP32, INT8 = 1e-5, 2e-3
OPENVINO_INT8 = 2e-2  # its own int8 matmuls
RUN_SECONDS = 300.0


def by_python(
    requirements: Sequence[str] | str, program: str, bundle: Path, texts: Sequence[Any], file: str, folder: Path
) -> Any:
    """Return the program's answers about `texts` from the model file `file`, run in an environment with only these requirements.
    `folder`: where the program may write."""
    python = python_with(*([requirements] if isinstance(requirements, str) else requirements))
    path = _written(texts, folder)
    return _answers([str(python), str(PROGRAMS / program), str(bundle), str(path), file], folder)


def by_node(version: str, program: str, bundle: Path, texts: Sequence[Any], file: str, folder: Path) -> Any:
    """Return the answers of a program that uses this major version of transformers.js."""
    place = node_with(f"@huggingface/transformers@{version}")
    copy = shutil.copy(PROGRAMS / program, place)  # Node looks for packages beside the program
    return _answers(["node", str(copy), str(bundle), str(_written(texts, folder)), file], place)


def _written(texts: Sequence[Any], folder: Path) -> Path:
    path = folder / "texts.json"
    path.write_text(json.dumps(texts), encoding="utf-8")
    return path


def _answers(command: list[str], cwd: Path) -> Any:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=RUN_SECONDS, cwd=cwd, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def classifier_logits(bundle: Path, file: str) -> np.ndarray:
    """Return our own logits for `TEXTS`."""
    return np.asarray(Classifier(bundle, precision=FILES[file], threads=1).logits(TEXTS, batch_size=1))


def share_of(file: str) -> float:
    return FP32 if file == "model.onnx" else INT8


def check(answers: Any, expected: np.ndarray, share: float, *, least: float = 1, what: str = "logit") -> None:
    """Check that `answers` equals `expected` within `share` of its range, which must exceed `least` in some column."""
    numbers, spread = np.array(answers, np.float32), float(np.ptp(expected, axis=0).max())
    assert spread > least, "answers that are nearly the same for every text would agree with anything"
    assert numbers.shape == expected.shape
    difference = np.abs(numbers - expected).max()
    print(f"largest difference of a {what}: {difference:.1g}")  # shown by `-rP`; for the table in docs/bundle.md
    assert difference <= share * spread
