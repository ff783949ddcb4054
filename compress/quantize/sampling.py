"""Values of tensors on a sample of texts, one batch at a time, without padding."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..graphs.matmuls import is_sequence_first
from ..graphs.model_files import write_model
from ..sessions.opening import open_session
from ..sessions.outputs import real_rows

Feed = dict[str, np.ndarray]


class Sample:
    """A model with `tensors`, of the ONNX type `kind`, as additional outputs, run on `feeds`: padded batches of its inputs
    by name. Use it in a `with`."""

    def __init__(
        self, model: ModelProto, tensors: Sequence[str], feeds: Sequence[Feed], *, kind: int = TensorProto.FLOAT
    ) -> None:
        self.tensors, self.feeds = tuple(tensors), feeds
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "sample.onnx"
        write_model(_with_outputs(model, self.tensors, kind), path)
        self._session = open_session(path)
        self._sequence_first = is_sequence_first(model.graph)
        self._names = {value.name for value in self._session.get_inputs()}

    def __enter__(self) -> Sample:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def batches(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield tensor -> [token, size], one batch at a time. A tensor without a row for each token is unchanged: the last
        layer of the fast graph has only the first token's, unless the model classifies tokens."""
        for feed in self.feeds if self.tensors else ():
            arrays = self._session.run(list(self.tensors), {name: feed[name] for name in self._names})
            mask = feed["attention_mask"].T if self._sequence_first else feed["attention_mask"]
            yield {name: real_rows(np.asarray(array), mask) for name, array in zip(self.tensors, arrays, strict=True)}

    def rows(self, count: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return (tensor -> [up to `count`, size], equally from all batches; tensor -> [2, size], how far each channel goes
        above and below zero)."""
        taken: dict[str, list[np.ndarray]] = {name: [] for name in self.tensors}
        reach: dict[str, np.ndarray] = {}
        share = -(-count // max(1, len(self.feeds)))
        for batch in self.batches():
            for name, array in batch.items():
                flat = array.reshape(-1, array.shape[-1])
                taken[name].append(flat[np.linspace(0, len(flat) - 1, min(share, len(flat))).round().astype(int)])
                sides = np.stack([flat.max(0), -flat.min(0)])
                reach[name] = np.maximum(reach.get(name, 0), sides)
        return {name: np.concatenate(parts) for name, parts in taken.items()}, reach


def _with_outputs(model: ModelProto, tensors: Sequence[str], kind: int) -> ModelProto:
    """Return a copy with `tensors` as additional outputs."""
    model = deepcopy(model)
    new_names = set(tensors) - {value.name for value in model.graph.output}
    shapes = (helper.make_tensor_value_info(name, kind, None) for name in tensors if name in new_names)
    model.graph.output.extend(shapes)
    return model
