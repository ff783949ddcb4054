"""Writing graphs to files, and parting their Gemms."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import EncodeError
from onnx import helper
from small_graphs import model_of

from compress.errors import CompressError
from compress.graphs.model_files import write_model
from compress.graphs.rewriting import split_gemms


def test_a_model_beyond_protobuf_s_limit_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    def refuse(**_: object) -> bytes:
        raise EncodeError("Failed to serialize proto")  # as of more than 2 GiB

    model: Any = SimpleNamespace(opset_import=[], SerializeToString=refuse)
    with pytest.raises(CompressError, match=r"large\.onnx: expected a model below 2 GiB; use a smaller teacher"):
        write_model(model, tmp_path / "large.onnx")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "kinds"),
    [({}, ["MatMul", "Add"]), ({"alpha": 2.0}, ["Gemm"]), ({"beta": 0.5}, ["Gemm"]), ({"transA": 1}, ["Gemm"])],
)
def test_a_gemm_that_scales_or_turns_its_input_stays(options: dict[str, Any], kinds: list[str]) -> None:
    weight = np.ones((8, 8), np.float32)
    node = helper.make_node("Gemm", ["x", "w", "b"], ["logits"], name="product", **options)
    model = model_of([node], {"x": weight, "w": weight, "b": weight[0]}, 8)
    split_gemms(model.graph, {"product"})
    assert [each.op_type for each in model.graph.node] == kinds
