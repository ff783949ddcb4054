"""Time the parts of `Classifier.predict` for one short text: the functions that it calls, in order."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tokenizers

from compress.runtime import Classifier
from compress.runtime.batches import chunks, pad_batch, tokens_per_run
from compress.runtime.cutting import Cutter
from compress.runtime.engine import OnnxRuntime

MODEL, REST, WHOLE = "the model (`session.run`)", "the rest of `predict`", "`predict`"


def part_times(classifier: Classifier, text: str, repeats: int) -> dict[str, float]:
    """Return median microseconds of each part of `predict(text)`, of the `REST` of it, and of the `WHOLE`: CPU time of this thread, so open
    `classifier` with one thread. Raises RuntimeError if the parts yield another answer than `predict`."""
    steps = _steps(classifier, OnnxRuntime(classifier.model, 1))
    samples: dict[str, list[int]] = {name: [] for name in (*steps, WHOLE)}

    def timed(name: str, step: Callable[[Any], Any], value: Any) -> Any:
        started = time.thread_time_ns()
        result = step(value)
        samples[name].append(time.thread_time_ns() - started)
        return result

    for _ in range(repeats):
        value: Any = text
        for name, step in steps.items():
            value = timed(name, step, value)
        if value != timed(WHOLE, classifier.predict, text):
            raise RuntimeError("the parts of predict give another answer than predict itself")
    medians = {name: statistics.median(times) / 1000 for name, times in samples.items()}
    whole = medians.pop(WHOLE)
    return {**medians, REST: whole - sum(medians.values()), WHOLE: whole}


def _steps(classifier: Classifier, engine: OnnxRuntime) -> dict[str, Callable[[Any], Any]]:
    """Return the steps; each takes the result of the one before. The first takes a text, the last returns a list of one answer."""
    cutter, tokenizer, settings = Cutter(classifier.tokenizer), classifier.tokenizer, classifier.settings

    def arrays(encodings: Sequence[tokenizers.Encoding]) -> dict[str, np.ndarray]:
        lengths = np.array([len(encoding) for encoding in encodings], np.int64)
        (chunk,) = chunks(lengths, tokens_per_run(int(lengths.sum())))
        return pad_batch([encodings[index] for index in chunk], engine.inputs, settings.pad_id)

    return {
        "tokenizing": lambda text: tokenizer.encode_batch_fast([cutter.cut(text)]),
        "batching and padding to arrays": arrays,
        MODEL: engine.run,
        "softmax and making the answer": lambda logits: list(settings.kind.answers(classifier.labels, logits)),
    }
