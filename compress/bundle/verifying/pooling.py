"""What tools obtain that pool the token states themselves, compared with the vectors that the graph outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import CheckFailed
from ...runtime.batches import pad_batch
from ...runtime.engine import KNOWN_INPUTS
from ...runtime.folder import find_model, read_json, read_settings
from ...sessions.opening import open_session
from ...sessions.outputs import VECTORS
from ..probes import probe_rows
from ..sentence_transformers_files import pooling_of

STATES = "last_hidden_state"  # the name that sentence-transformers, FastEmbed and transformers.js use
TOLERANCE = 1e-4  # for vectors of length 1: the same fp32 states, summed in another order


def check_states(folder: Path, precision: str, texts: Sequence[tuple[str, ...]]) -> str:
    """Compare on the probe's `texts`, two at a time, the shorter padded. CheckFailed: the graph lacks an output, or they
    disagree."""
    _, path = find_model(folder, precision)
    session = open_session(path, threads=1)
    names = [output.name for output in session.get_outputs()]
    if missing := [name for name in (STATES, VECTORS) if name not in names]:
        raise CheckFailed(f"{path}: expected the outputs {STATES} and {VECTORS}, found no {missing[0]}")
    pooling, pad = pooling_of(folder / "config.json", read_json(folder / "config.json")), read_settings(folder).pad_id
    inputs: dict[str, type] = {item.name: np.int64 for item in session.get_inputs()}
    rows, furthest = probe_rows(folder, texts).encodings, 0.0
    for start in range(0, len(rows), 2):
        batch = pad_batch(rows[start : start + 2], dict.fromkeys(KNOWN_INPUTS, np.int64), pad)
        states, vectors = session.run([STATES, VECTORS], {name: batch[name] for name in inputs})
        distances = np.linalg.norm(pool_states(states, batch["attention_mask"], pooling) - vectors, axis=1)  # type: ignore[arg-type]
        furthest = max(furthest, float(distances.max()))
    if not furthest <= TOLERANCE:
        raise CheckFailed(
            f"{path}: {STATES}, pooled as {pooling}, is not {VECTORS}: {furthest:.2g} apart (at most {TOLERANCE:.2g})"
        )
    return f"{STATES}, pooled as {pooling}, gives {VECTORS}: at most {furthest:.2g} apart"


def pool_states(states: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Return float64 [text, width] of length 1, from `states` [text, token, width] and the `mask` [text, token] of real
    tokens; 0 if all states are 0."""
    own, there = states.astype(np.float64), mask[:, :, None]
    vectors = own[:, 0] if pooling == "cls" else (own * there).sum(axis=1) / there.sum(axis=1)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(float).tiny)
