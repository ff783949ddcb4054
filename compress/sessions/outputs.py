"""Which outputs of a graph hold its answers, and how to read them from a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

# Outputs of a question-answering graph, as named by transformers and optimum.
SPAN_LOGITS = (
    "start_logits",
    "end_logits",
)
VECTORS = "sentence_embedding"  # output of a graph that embeds texts, as named by sentence-transformers
_ANSWERS = (("logits",), SPAN_LOGITS, (VECTORS,))


def wanted_outputs(names: Sequence[str]) -> list[str]:
    """Select a graph's answers among its outputs `names`, at least one: `logits`, the start and end logits of a span, or
    vectors; otherwise the first output."""
    return next((list(wanted) for wanted in _ANSWERS if set(wanted) <= set(names)), list(names[:1]))


def stack_outputs(outputs: Sequence[np.ndarray]) -> np.ndarray:
    """Return the outputs from `wanted_outputs` as one array: the two of spans, [batch, length] each, are stacked to
    [batch, length, 2]."""
    import numpy as np

    return outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=-1)


def graph_logits(names: Sequence[str], run: Callable[[Sequence[str]], Sequence[Any]]) -> np.ndarray:
    """Return the answers of a graph with outputs `names`; `run` computes the outputs it is passed."""
    import numpy as np

    return stack_outputs([*map(np.asarray, run(wanted_outputs(names)))])


def run_logits(session: onnxruntime.InferenceSession, feed: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the `graph_logits` of a session for `feed`, which may have inputs that the graph does not."""
    inputs = {value.name: feed[value.name] for value in session.get_inputs()}
    return graph_logits([value.name for value in session.get_outputs()], lambda wanted: session.run([*wanted], inputs))


def real_rows(outputs: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the rows of outputs [batch, length, size] that are no padding by `mask` [batch, length], as [token, size];
    other outputs unchanged."""
    return outputs[mask.astype(bool)] if outputs.ndim == 3 and outputs.shape[:2] == mask.shape else outputs
