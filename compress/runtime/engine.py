"""Runtimes of a model file: the interface, and ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np

from ..errors import CompressError
from ..sessions.opening import open_session, open_sharing
from ..sessions.outputs import stack_outputs, wanted_outputs

KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Engine(Protocol):
    """A model file opened by a runtime; `run` may be called from several threads."""

    path: Path
    inputs: dict[str, type]  # name -> numpy's integer type
    hint: str | None  # the precision that the runtime computes in, if it has a choice

    def run(self, batch: dict[str, np.ndarray]) -> np.ndarray:
        """Run a batch: integer [rows, length] by input name -> logits [rows, labels]; for a model that labels tokens [rows, length,
        labels]; for one that finds spans [rows, length, 2], the start and the end logit of each token; for a sentence encoder vectors
        [rows, width]. CompressError: the runtime failed."""
        ...


class OnnxRuntime:
    """ONNX Runtime on the CPU, with the session options of `open_session`. `owner`: the model file that contains the weights of an unpadded
    form."""

    def __init__(self, path: Path, threads: int | None, owner: Path | None = None) -> None:
        self.path = path
        self.hint: str | None = None
        self._session = open_session(path, threads) if owner is None else open_sharing(path, owner, threads)
        types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
        self.inputs = known_inputs(path, {item.name: item.type for item in self._session.get_inputs()}, types)
        names = [item.name for item in self._session.get_outputs()]
        if not names:
            raise CompressError(f"{path}: expected an output `logits`, found none")
        self._outputs = wanted_outputs(names)

    def run(self, batch: dict[str, np.ndarray]) -> np.ndarray:
        try:
            return stack_outputs([np.asarray(output) for output in self._session.run(self._outputs, batch)])
        except Exception as error:  # the binding's own types share no base but Exception
            raise CompressError(f"{self.path}: ONNX Runtime failed: {' '.join(str(error).split())}") from None


def known_inputs(path: Path, inputs: dict[str, str], types: dict[str, type]) -> dict[str, type]:
    """Return numpy's type of each input; `types` maps the runtime's type names. CompressError: inputs that are not ours."""
    for name, kind in inputs.items():
        if name not in KNOWN_INPUTS or kind not in types:
            raise CompressError(
                f"{path}: expected integer inputs among {', '.join(KNOWN_INPUTS)}, found {name}: {kind}"
            )
    if "input_ids" not in inputs:
        raise CompressError(f"{path}: expected an input `input_ids`, found {', '.join(inputs) or 'none'}")
    return {name: types[kind] for name, kind in inputs.items()}
