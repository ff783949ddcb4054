"""A file that is not ours is refused with one line before ONNX Runtime touches it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from compress.errors import CompressError
from compress.sessions.checks import check_graph_file
from compress.sessions.opening import open_session, session_options

WEIGHT = np.arange(16, dtype=np.float32).reshape(4, 4)


def external(location: str) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="length", value="64")
    return tensor


def model(weight: TensorProto, place: str = "initializer") -> onnx.ModelProto:
    """y = x @ w, with w an initialiser, a Constant node's attribute, or inside an If's branch."""
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    initializers = [weight] if place == "initializer" else []
    nodes = [helper.make_node("Constant", [], ["w"], value=weight), product]
    if place == "initializer":
        nodes = [product]
    elif place == "branch":
        branch = helper.make_graph(nodes, "branch", [], [out])
        condition = numpy_helper.from_array(np.array(True), "c")
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
        initializers = [condition]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])]
    graph = helper.make_graph(nodes, "g", inputs, [out], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(model(numpy_helper.from_array(WEIGHT, "w")), folder / "m.onnx")
    return folder / "m.onnx"


def test_session_runs_with_the_options_used_everywhere(good: Path) -> None:
    session = open_session(good, threads=1)
    x = np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], WEIGHT)
    options = session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert session.get_providers() == ["CPUExecutionProvider"]
    spinning = session_options(2, spinning=True)
    assert spinning.get_session_config_entry("session.intra_op.allow_spinning") == "1"


@pytest.mark.parametrize("place", ["initializer", "attribute", "branch"])
@pytest.mark.parametrize("escape", ["../secret.bin", "sub/../../secret.bin", "{absolute}", "link.bin", "a\0b"])
def test_external_data_outside_the_folder_is_refused(good: Path, place: str, escape: str) -> None:
    secret = good.parent.parent / "secret.bin"
    secret.write_bytes(WEIGHT.tobytes())
    (good.parent / "sub").mkdir()
    (good.parent / "link.bin").symlink_to(secret)
    weight = external(escape.format(absolute=secret))
    good.write_bytes(model(weight, place).SerializeToString())
    with pytest.raises(CompressError, match=r"outside the model's folder: refused") as error:
        open_session(good)
    assert "\n" not in str(error.value)


def test_external_data_through_a_linked_folder_is_refused(good: Path) -> None:
    elsewhere = good.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "w.bin").write_bytes(WEIGHT.tobytes())
    (good.parent / "sub").symlink_to(elsewhere)
    good.write_bytes(model(external("sub/w.bin")).SerializeToString())
    with pytest.raises(CompressError, match="outside the model's folder"):
        check_graph_file(good)


def test_external_data_beside_the_model_is_used(good: Path) -> None:
    good.write_bytes(model(external("w.bin")).SerializeToString())
    with pytest.raises(CompressError, match=r"expected the file 'w.bin' beside the model"):
        open_session(good)
    (good.parent / "w.bin").write_bytes(WEIGHT.tobytes())
    x = np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(open_session(good, threads=1).run(None, {"x": x})[0], WEIGHT)


def test_a_runtime_memory_address_in_place_of_a_file_is_refused(good: Path) -> None:
    good.write_bytes(model(external("*/_ORT_MEM_ADDR_/*")).SerializeToString())
    with pytest.raises(CompressError, match="external data"):
        open_session(good)


def test_every_truncation_is_one_line(good: Path) -> None:
    whole = good.read_bytes()
    for size in range(len(whole)):
        good.write_bytes(whole[:size])
        try:
            open_session(good, threads=1)
        except CompressError as error:
            assert "\n" not in str(error)
            assert str(good) in str(error)
        else:  # only the opset imports behind the graph are missing: protobuf cannot tell
            assert size > len(whole) - 16


@pytest.mark.parametrize("content", [b"", b"not a model at all", b"\x00" * 64, b"\xff" * 64])
def test_foreign_bytes_are_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(CompressError, match=r"m\.onnx: "):
        open_session(tmp_path / "m.onnx")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="found nothing"):
        open_session(tmp_path / "none.onnx")
    with pytest.raises(CompressError, match="found a folder"):
        open_session(tmp_path)


def test_an_unknown_operator_is_a_compress_error_and_nothing_is_printed(good: Path, capfd) -> None:
    graph = onnx.load(good)
    graph.graph.node[0].op_type = "NoSuchOperator"
    good.write_bytes(graph.SerializeToString())
    with pytest.raises(CompressError, match="ONNX Runtime cannot load it"):
        open_session(good)
    assert capfd.readouterr() == ("", "")


def test_a_run_that_fails_prints_nothing(good: Path, capfd) -> None:
    graph = onnx.load(good)
    graph.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "k"
    good.write_bytes(graph.SerializeToString())
    session = open_session(good, threads=1)
    with pytest.raises(Exception, match="MatMul"):  # the binding's own types share no base but Exception
        session.run(None, {"x": np.ones((1, 3), np.float32)})
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\n", b""])
def test_a_broken_file_beside_a_model_hides_no_version_that_it_needs(
    good: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime, "__version__", "1.16.3")
    (good.parent / "a.onnx").write_bytes(content)
    with pytest.raises(CompressError, match=r"m\.onnx: needs onnxruntime 1\.18 or later .*; export with opset: 20"):
        open_session(good)
    older = onnx.load(good)
    older.opset_import[0].version, older.ir_version = 18, 8
    onnx.save(older, good.parent / "older.onnx")
    with pytest.raises(CompressError, match=r"m\.onnx: needs .*; older\.onnx beside it opens with that"):
        open_session(good)


def test_sessions_import_neither_torch_nor_onnx(good: Path) -> None:
    code = (
        f"import sys; from compress.sessions.opening import open_session; open_session({str(good)!r})\n"
        "assert not {'torch', 'onnx', 'pydantic', 'transformers'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
