"""Which ONNX Runtime a file needs, and what is said where it is older."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from compress.errors import CompressError
from compress.quantize import quantize_onnx
from compress.sessions.checks import read_structure
from compress.sessions.opening import open_session, open_sharing
from compress.sessions.requirements import Requirements, requirements, version_number
from compress.sessions.structure import Call, Structure
from compress.spec.quantization import Quantize


@pytest.mark.parametrize(
    ("opset", "ir_version", "oldest"),
    [
        (20, 9, "1.17"),
        (20, 10, "1.18"),
        (22, 10, "1.21"),
        (23, 11, "1.23"),
        (13, 7, "1.14"),
        (99, 9, None),
        (20, 99, None),
    ],
)
def test_the_newest_part_counts(opset: int, ir_version: int, oldest: str | None) -> None:
    structure = Structure(ir_version=ir_version, opsets={"": opset, "com.microsoft": 1})
    assert requirements(structure) == Requirements(oldest, opset, ir_version)


def test_an_operator_may_have_come_after_its_opset() -> None:
    calls = [Call("q", "", "QuantizeLinear", (), 23)]
    assert requirements(Structure(calls=calls, ir_version=11, opsets={"": 23})).onnxruntime == "1.24"
    assert requirements(Structure(calls=calls, ir_version=10, opsets={"": 21})).onnxruntime == "1.18"


def test_versions_are_compared_as_numbers() -> None:
    assert version_number("1.9") < version_number("1.17.3") < version_number("1.18.0.dev20240101")
    assert Requirements("1.9", 18, 8).allow("1.17")
    assert not Requirements("1.24", 23, 11).allow("1.23.2")
    assert Requirements(None, 99, 99).allow("1.2")


@pytest.fixture(scope="module")
def folder(tiny_onnx: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Opset 23, fp32 and static int8, their unpadded forms, and a QDQ file of opset 20."""
    out = tmp_path_factory.mktemp("forms")
    for name in ("model.onnx", "model_unpadded.onnx"):
        shutil.copyfile(tiny_onnx("bert", "fast", 23).with_name(name), out / name)
    ids = np.arange(5, 45).reshape(4, 10)
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    for int8_format in ("static", "qdq"):
        quantize_onnx(out / "model.onnx", out, Quantize(method="static"), int8_format=int8_format, feeds=[feed])
    return out


def test_real_files(folder: Path, tiny_onnx: Callable[..., Path]) -> None:
    oldest = {path.name: requirements(read_structure(path)).onnxruntime for path in folder.glob("*.onnx")}
    assert oldest == {
        "model.onnx": "1.23",
        "model_unpadded.onnx": "1.23",
        "model_quantized.onnx": "1.24",
        "model_quantized_unpadded.onnx": "1.24",
        "model_qdq.onnx": "1.17",
    }
    for graph in ("fast", "plain"):
        assert requirements(read_structure(tiny_onnx("bert", graph))) == Requirements("1.17", 20, 9)


def test_an_older_runtime_is_told_what_it_needs_and_what_opens(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime, "__version__", "1.22.1")
    path = folder / "model_quantized.onnx"
    expected = (
        rf"{path}: needs onnxruntime 1.24 or later \(opset 23, IR version 11\), found onnxruntime 1.22.1; "
        "model_qdq.onnx beside it opens with that"
    )
    with pytest.raises(CompressError, match=expected):
        open_session(path)
    with pytest.raises(CompressError, match=r"model_quantized_unpadded\.onnx: needs onnxruntime 1.24 or later"):
        open_sharing(folder / "model_quantized_unpadded.onnx", path)
    open_session(folder / "model_qdq.onnx")
    shutil.copyfile(path, tmp_path / path.name)
    with pytest.raises(CompressError, match=r"found onnxruntime 1\.22\.1; export with opset: 20 for older ones"):
        open_session(tmp_path / path.name)
