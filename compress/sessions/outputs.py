"""Which outputs of a graph are its answers, and how to take them from a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

SPAN_LOGITS = (
    "start_logits",
    "end_logits",
)  # outputs of a graph that finds answers, as transformers and optimum call them
VECTORS = "sentence_embedding"  # the output of a graph that turns texts into vectors, as sentence-transformers calls it
_ANSWERS = (("logits",), SPAN_LOGITS, (VECTORS,))


def wanted_outputs(names: Sequence[str]) -> list[str]:
    """Of a graph's outputs, of which there is one or more, those that answer: `logits`, those of the start and of the end of a span,
    or vectors; of a graph of others, its first."""
    return next((list(wanted) for wanted in _ANSWERS if set(wanted) <= set(names)), list(names[:1]))


def joined(outputs: Sequence[np.ndarray]) -> np.ndarray:
    """What `wanted_outputs` gave as one array: of spans [batch, length] and [batch, length], side by side: [batch, length, 2]."""
    import numpy as np

    return outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=-1)


def graph_logits(names: Sequence[str], run: Callable[[Sequence[str]], Sequence[Any]]) -> np.ndarray:
    """What a graph answers whose outputs have these `names`; `run` gives those that it asks for."""
    import numpy as np

    return joined([*map(np.asarray, run(wanted_outputs(names)))])


def run_logits(session: onnxruntime.InferenceSession, feed: Mapping[str, np.ndarray]) -> np.ndarray:
    """`graph_logits` of a session for the inputs `feed`, among which may be others than the graph's."""
    given = {value.name: feed[value.name] for value in session.get_inputs()}
    return graph_logits([value.name for value in session.get_outputs()], lambda wanted: session.run([*wanted], given))


def real_rows(outputs: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of outputs [batch, length, size] those of the tokens that `mask` [batch, length] says are there, [token, size]; others as they
    are."""
    return outputs[mask.astype(bool)] if outputs.ndim == 3 and outputs.shape[:2] == mask.shape else outputs
