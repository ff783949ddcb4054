"""Embeddings mixed from several layers' states: computed by hand, by torch and by every graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_encoders import encoder

from compress.export.fast import build_fast
from compress.export.tracing import load, trace
from compress.graphs.model_files import write_model
from compress.models.families import FAMILIES
from compress.models.features.named import compute_features
from compress.quantize import quantize_onnx
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

LENGTHS = (12, 5)
FAST = [name for name, family in FAMILIES.items() if family.fast_graph and not family.layerless]


def batch() -> dict[str, torch.Tensor]:
    """Return two texts with the lengths `LENGTHS`."""
    shape = len(LENGTHS), max(LENGTHS)
    ids, mask = torch.randint(6, 90, shape, generator=torch.Generator().manual_seed(3)), torch.zeros(shape)
    for row, length in enumerate(LENGTHS):
        mask[row, :length] = 1
    return {"input_ids": ids, "attention_mask": mask.long(), "token_type_ids": torch.zeros_like(ids)}


def vectors(model: Any) -> np.ndarray:
    with torch.no_grad():
        return compute_features(model, batch(), ("logits",))["logits"].numpy()


def expected(family: str, pooling: str, weights: Mapping[int, float]) -> np.ndarray:
    """Return the vectors computed by hand, one text at a time. `weights`: index into transformers' hidden states -> weight."""
    model, inputs, rows = encoder(family, pooling), batch(), []
    names = [name for name in inputs if name != "token_type_ids" or family not in ("distilbert", "mpnet", "roberta")]
    for row, length in enumerate(LENGTHS):
        with torch.no_grad():
            one = {name: inputs[name][row : row + 1, :length] for name in names}
            states: Any = model(**one, output_hidden_states=True).hidden_states
        mixed = np.sum([weight * states[place][0].numpy() for place, weight in weights.items()], axis=0)
        vector = mixed[0] if pooling == "cls" else mixed.mean(axis=0)
        rows.append(vector / np.linalg.norm(vector))
    return np.stack(rows)


def check_graphs(checkpoint: Path, folder: Path, wanted: np.ndarray, *, plain: bool = True) -> None:
    """Check that each form of graph returns the `wanted` vectors; the plain form takes longest to make."""
    traced = load(checkpoint, "embedding")
    graphs = {
        **({"plain": trace(traced, 20)} if plain else {}),
        "fast": build_fast(traced.model, kind="embedding", opset=20),
        "unpadded": build_fast(traced.model, kind="embedding", opset=20, unpadded=True),
    }
    for name, graph in graphs.items():
        assert graph is not None
        write_model(graph, folder / f"{name}.onnx")
        (actual,) = _run(folder / f"{name}.onnx", "sentence_embedding")
        np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-5, err_msg=name)


def int8_outputs(checkpoint: Path, folder: Path, method: Any) -> list[np.ndarray]:
    """Return the last states and the vectors of the fast graph in int8."""
    graph = build_fast(load(checkpoint, "embedding").model, kind="embedding", opset=20)
    assert graph is not None
    write_model(graph, folder / "model.onnx")
    (folder / "out").mkdir()
    feeds = [{name: value.numpy() for name, value in batch().items()}]
    info = quantize_onnx(folder / "model.onnx", folder / "out", Quantize(method=method), feeds=feeds)
    assert info["int8_matmuls"] > 0
    return _run(folder / "out" / "model_quantized.onnx", "last_hidden_state", "sentence_embedding")


def _run(file: Path, *outputs: str) -> list[np.ndarray]:
    session = open_session(file, threads=1)
    feed = {item.name: batch()[item.name].numpy() for item in session.get_inputs()}
    return [np.asarray(each) for each in session.run([*outputs], feed)]
