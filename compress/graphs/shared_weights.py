"""The unpadded form of a graph: a second graph for padded batches, whose weights are references into the first one's file.

Imports `onnx`: for export and quantization. `compress.runtime.unpadded` runs the form.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from onnx import ModelProto, external_data_helper

from ..errors import CheckFailed
from ..sessions.checks import WEIGHTS
from .model_files import get_metadata, set_metadata

SCOPE = "unpad"  # prefix of the names of nodes that move tokens
_SHARED_BYTES = 256  # a reference to a smaller weight would be as large


def share_weights(model: ModelProto, owner: Path) -> None:
    """Replace weights of 256 bytes and more by references to the same bytes in `owner`, an ONNX file in the folder that the
    model will be written to; the metadata holds its SHA-256. In place. CheckFailed: `owner` lacks one."""
    content, at = owner.read_bytes(), 0
    for tensor in model.graph.initializer:
        size = len(tensor.raw_data)
        if size < _SHARED_BYTES:
            continue
        offset = content.find(tensor.raw_data, at)  # both files have most weights in the same order
        if offset < 0:
            offset = content.find(tensor.raw_data)
        if offset < 0:
            raise CheckFailed(f"{owner}: expected the weight {tensor.name} in it, found none of its bytes")
        at = offset + size
        external_data_helper.set_external_data(tensor, owner.name, offset=offset, length=size)
        tensor.ClearField("raw_data")
    set_metadata(model, {**get_metadata(model), WEIGHTS: hashlib.sha256(content).hexdigest()})
