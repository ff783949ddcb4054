"""Lengths of a task's texts in tokens, by each candidate's own tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import CompressError
from ..models.checkpoints.folders import load_tokenizer, tokenizer_files
from ..runtime.folder import read_settings
from ..spec.task import TaskSpec
from ..tasks import Split, check_data_dir, encode, load_training, resolve_task
from .spec import Candidate

SAMPLE = 64  # texts, spread evenly over the split


def with_lengths(candidates: Sequence[Candidate], task: str, data_dir: Path | None) -> list[Candidate]:
    """Return the candidates with `lengths` of the same sample of texts from the tuning split, which is held out of train.

    A graph without a tokenizer in its folder takes the lengths of the first candidate that has one. CompressError: no candidate has a
    tokenizer, the task is unknown, its data are missing, or a bundle is for another number of text columns.
    """
    spec, folder = resolve_task(task)
    check_data_dir(data_dir, [spec])
    homes = [_tokenizer_folder(candidate.path) for candidate in candidates]
    first = next((home for home in homes if home is not None), None)
    if first is None:
        raise CompressError(
            f"--task {task}: expected a bundle or a checkpoint, whose tokenizer says how long the texts are; found none"
        )
    tuning = load_training(spec, folder, data_dir).tuning
    texts = tuning.select(sample_indices(len(tuning)))
    lengths = {home: _lengths(home, spec, texts) for home in {*homes, first} if home is not None}
    return [
        replace(candidate, lengths=lengths[home or first]) for candidate, home in zip(candidates, homes, strict=True)
    ]


def sample_indices(count: int) -> np.ndarray:
    """Return the indices of the texts to measure, out of `count`, int64."""
    most = min(count, SAMPLE)
    return np.arange(most) * count // max(1, most)


def _tokenizer_folder(path: Path) -> Path | None:
    """Return a checkpoint's folder, or that of a graph, or the bundle around it; None if it has no tokenizer."""
    places = [path] if path.is_dir() else [path.resolve().parent, path.resolve().parent.parent]
    places = places[:2] if path.parent.name == "onnx" else places[:1]
    return next((place for place in places if (place / "config.json").exists() and tokenizer_files(place)), None)


def _lengths(home: Path, spec: TaskSpec, texts: Split) -> tuple[int, ...]:
    settings = read_settings(home)
    if settings.columns is not None and len(settings.columns) != len(spec.text):
        raise CompressError(
            f"{home}: expected a bundle for {len(spec.text)} text column(s), as task {spec.name} has; "
            f"found {len(settings.columns)}"
        )
    encoded = encode(load_tokenizer(home), texts, min(spec.max_length, settings.max_length))
    return tuple(int(length) for length in encoded.lengths)
