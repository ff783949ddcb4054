"""What neural-compressor's quantizer is given: the checkpoint in torch, beside its fp32 ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..sessions import open_session
from ..spec.quantization import Quantize

if TYPE_CHECKING:
    from ..quantize.search import Judge

_OPSET = 20  # per-channel and per-tensor DequantizeLinear, and Gelu in one node


def quantize_checkpoint(
    checkpoint: Path,
    source: Path,
    out: Path,
    spec: Quantize,
    *,
    feeds: Sequence[dict[str, np.ndarray]],
    judge: Judge | None,
    name: str | None = None,
) -> dict[str, Any]:
    """As `quantize_inc`, of a checkpoint folder. `source` is its fp32 ONNX file, whose inputs the result has too."""
    from ..quantize.inc import check_installed, quantize_inc

    check_installed()
    from ..export.program import read_program
    from ..export.tracing import quiet

    inputs = [value.name for value in open_session(source).get_inputs()]
    program = read_program(checkpoint, inputs, _OPSET)
    with quiet():  # the loop tells its terminal of every step
        return quantize_inc(source, out, spec, program, feeds=feeds, judge=judge, name=name)
