"""Descriptions of a bundle's graph files, read from the files themselves."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from ..errors import CheckFailed
from ..runtime.folder import MODEL_FILES, unpadded_beside
from ..sessions.checks import read_structure
from ..sessions.requirements import requirements
from .document import GraphFile, Requires


def graph_file(folder: Path, precision: str) -> GraphFile:
    """Describe a bundle's graph. CheckFailed: it does not say how it was quantized."""
    import onnx

    from ..graphs.model_files import get_metadata

    path = folder / "onnx" / MODEL_FILES[precision]
    unpadded = unpadded_beside(path)
    description = get_metadata(onnx.load(str(path), load_external_data=False)).get("quantization")
    try:
        return GraphFile(
            file=path.relative_to(folder).as_posix(),
            format=json.loads(description)["format"] if description is not None else "fp32",
            unpadded=unpadded.relative_to(folder).as_posix() if unpadded.is_file() else None,
            requires=Requires(**asdict(requirements(read_structure(path)))),
        )
    except (ValueError, TypeError, KeyError):
        raise CheckFailed(
            f"{path}: metadata `quantization`: expected JSON with a format, found {description!r:.60}; "
            "if an earlier version made it, give its `compress run` again"
        ) from None
