"""What a bundle's graph files are, as they themselves say."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import CheckFailed
from ..runtime.folder import MODEL_FILES, unpadded_beside
from .document import GraphFile


def graph_file(folder: Path, precision: str) -> GraphFile:
    """Of a bundle's graph. CheckFailed: it does not say how it was quantized."""
    import onnx

    from ..graphs import get_metadata

    path = folder / "onnx" / MODEL_FILES[precision]
    unpadded = unpadded_beside(path)
    said = get_metadata(onnx.load(str(path), load_external_data=False)).get("quantization")
    try:
        return GraphFile(
            file=path.relative_to(folder).as_posix(),
            layout=json.loads(said)["layout"] if said is not None else "fp32",
            unpadded=unpadded.relative_to(folder).as_posix() if unpadded.is_file() else None,
        )
    except (ValueError, TypeError, KeyError):
        raise CheckFailed(f"{path}: metadata `quantization`: expected JSON with a layout, found {said!r}") from None
