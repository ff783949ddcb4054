"""Our portable file in OpenVINO: the same engine as NNCF's int8, another graph."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino_nncf

ENVIRONMENT = openvino_nncf.ENVIRONMENT
PACKAGES = ("openvino",)
VARIANTS = {"ours QDQ in OpenVINO": "the file of `ours QDQ`, read by OpenVINO as it is"}


def convert(variant: str, model: Path, out: Path) -> None:
    shutil.copyfile(model / "ours-qdq/model_qdq.onnx", out / "model.onnx")


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return openvino_nncf.compiled(out / "model.onnx", threads)
