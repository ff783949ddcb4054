"""Augmented examples as a file: one JSON object per line, to be looked at and read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ..errors import CompressError
from ..tasks import Split
from .copies import Augmented

NAME = "augmented.jsonl"


def write_augmented(augmented: Augmented, out: Path) -> None:
    """`augmented.jsonl` in the folder `out`: `texts`, `label` and `source` of an example on every line."""
    out.mkdir(parents=True, exist_ok=True)
    rows = zip(*augmented.split.texts, strict=True)
    labels, sources = augmented.split.labels.tolist(), augmented.source.tolist()
    with (out / NAME).open("w", encoding="utf-8") as file:
        for texts, label, source in zip(rows, labels, sources, strict=True):
            line = {"texts": texts, "label": label, "source": source}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_augmented(folder: Path) -> Split:
    """The examples that `write_augmented` put into `folder`. Raises `CompressError` naming the line that is none."""
    path = folder / NAME
    columns: list[list[str]] = []
    labels: list[int | float] = []
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                example = json.loads(line)
                columns = columns or [[] for _ in example["texts"]]
                for column, text in zip(columns, example["texts"], strict=True):
                    column.append(text)
                labels.append(example["label"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CompressError(f"{path}:{len(labels) + 1}: not an augmented example: {error!r}") from None
    if not labels:
        raise CompressError(f"{path}: empty; expected an example on every line")
    return Split(tuple(columns), np.array(labels, np.int64 if isinstance(labels[0], int) else np.float32))
