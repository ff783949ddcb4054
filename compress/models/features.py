"""Named features of a model on a batch: `logits`, `hidden[i]` (0 is the embedding output, -1 the last layer)."""

import inspect
import re
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from ..errors import CompressError

Features = dict[str, Tensor]
Batch = dict[str, Tensor]

_HIDDEN = re.compile(r"hidden\[(-?\d+)\]")


def accepted_inputs(model: nn.Module) -> frozenset[str]:
    """Which of the tokenizer's outputs the model's forward takes."""
    parameters = inspect.signature(model.forward).parameters
    names = {"input_ids", "attention_mask"} & parameters.keys()
    types = getattr(model.config, "type_vocab_size", 0)
    return frozenset(names | ({"token_type_ids"} if "token_type_ids" in parameters and types > 1 else set()))


def compute_features(model: nn.Module, batch: Batch, wanted: Iterable[str]) -> Features:
    """The `wanted` features of `model` on `batch`, and nothing that costs more than they need.

    Logits are [batch, classes]; hidden states are [batch, length, hidden].
    Raises `CompressError` for a name that is not a feature.
    """
    names = frozenset(wanted)
    hidden = {name: int(match[1]) for name in names if (match := _HIDDEN.fullmatch(name))}
    config: Any = model.config
    states = config.num_hidden_layers + 1
    unknown = {name for name in names - {"logits"} if not -states <= hidden.get(name, states) < states}
    if unknown:
        raise CompressError(f"unknown features {sorted(unknown)}; known: logits, hidden[i] with i below {states}")
    inputs = {name: batch[name] for name in accepted_inputs(model)}
    output = model(**inputs, output_hidden_states=bool(hidden))
    features = {name: output.hidden_states[index] for name, index in hidden.items()}
    return {"logits": output.logits, **features}
