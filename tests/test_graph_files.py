"""Writing graphs to files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.message import EncodeError

from compress.errors import CompressError
from compress.graphs import write_model


def test_a_model_beyond_protobuf_s_limit_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    def refuse(**_: object) -> bytes:
        raise EncodeError("Failed to serialize proto")  # as of more than 2 GiB

    model: Any = SimpleNamespace(opset_import=[], SerializeToString=refuse)
    with pytest.raises(CompressError, match=r"large\.onnx: expected a model below 2 GiB; use a smaller teacher"):
        write_model(model, tmp_path / "large.onnx")
    assert not any(tmp_path.iterdir())
