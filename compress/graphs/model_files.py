"""Write an ONNX model to a file, check it, and read or set its metadata."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import EncodeError
from onnx import ModelProto

from ..errors import CheckFailed, CompressError
from ..files.atomic import write_bytes
from ..version import __version__

PRODUCER = "bert-compress"


def set_metadata(model: ModelProto, values: dict[str, str]) -> None:
    """Replace the model's metadata, sorted by key."""
    del model.metadata_props[:]
    for key in sorted(values):
        model.metadata_props.add(key=key, value=values[key])


def get_metadata(model: ModelProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props}


def check_model(path: Path) -> None:
    """Run onnx.checker with shape inference on the absolute path: types, shapes, path escapes. CheckFailed."""
    try:
        onnx.checker.check_model(str(Path(path).resolve()), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise CheckFailed(f"{path}: the ONNX checker refuses it: {' '.join(str(error).split())}") from None


def write_model(model: ModelProto, path: Path) -> None:
    """Write one file atomically, with the same bytes for the same model. Sets the model's IR version, the oldest that
    supports its opsets, and its producer."""
    model.producer_name, model.producer_version = PRODUCER, __version__
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    try:
        content = model.SerializeToString(deterministic=True)
    except EncodeError:  # protobuf's limit
        raise CompressError(f"{path}: expected a model below 2 GiB; use a smaller teacher") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, content)
