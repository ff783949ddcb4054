"""Train a random model for a few steps in a separate process; print the memory it grew by and the estimate, in bytes.

memory_child.py LAYERS HIDDEN LENGTH BATCH PRECISION DROPOUT
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from training_toys import fit

from compress.models.cards import RandomInit
from compress.models.dimensions import dimensions
from compress.models.random_models import random_classifier, random_config
from compress.pipeline.memory import Forward, training_memory
from compress.spec.stages import Training
from compress.tasks import Encoded
from compress.training import loop
from compress.training.word_rows import WordTable


def model(layers: int, hidden: int, vocabulary: int, dropout: float) -> Any:
    sizes: Any = {"layers": layers, "hidden": hidden, "heads": hidden // 32, "intermediate": 4 * hidden}
    init = RandomInit(**sizes, vocabulary=vocabulary, max_positions=512, dropout=dropout)
    return random_classifier(random_config(init), kind="classification", labels=("a", "b"))


def trained(model: Any, batch: int, length: int, precision: str) -> None:
    count = 2 * batch
    rows = [np.full(length, 5, np.int32)] * count
    data = Encoded(rows, [np.zeros(length, np.int8)] * count, np.arange(count) % 2)
    loop._Run.save = lambda run: None  # type: ignore[method-assign]
    loop.cut_words = lambda *anything: WordTable()  # the memory that word cutting saves is not estimated
    with tempfile.TemporaryDirectory() as work:
        settings = Training(max_steps=3, batch_size=batch)
        fit(model, settings, Path(work), data=data, evaluate=lambda model: 0.0, precision=precision)


def peak() -> int:
    """Return this program's peak memory; getrusage would include that of the process that started it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def main() -> None:
    layers, hidden, length, batch = map(int, sys.argv[1:5])
    precision, dropout = sys.argv[5], float(sys.argv[6])
    trained(model(1, 32, 50, dropout), 4, 8, precision)  # memory that the libraries take
    before = peak()
    student = model(layers, hidden, 8000, dropout)
    trained(student, batch, length, precision)
    how = Forward(half=precision == "bf16", gpu=False, dropout=dropout > 0)
    sizes = dimensions(student.config.to_dict(), classes=2)
    print(json.dumps([peak() - before, training_memory(sizes, batch, length, how).total]))


main()
