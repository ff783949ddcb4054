"""transformers' multiple-choice models on rows: [pair, length] to logits [pair, 1], like every other model here.

The originals take [question, ending, length], with equally many endings per question, and return the scores side by side. A pair's score
does not depend on the others, so here each pair is a question with one ending. Weights and saved checkpoints are the same.
"""

from __future__ import annotations

from functools import cache, partial, wraps
from typing import Any

import torch
from torch import Tensor

_OF_ROWS = ("attention_mask", "token_type_ids", "position_ids")


@cache
def takes_rows(kind: type[Any]) -> type[Any]:
    """Return a subclass of transformers' class `kind`, with the same name, whose forward takes rows; other classes are returned
    unchanged."""
    if not kind.__module__.startswith("transformers."):
        return kind

    @wraps(kind.forward)
    def forward(self: Any, input_ids: Tensor, **others: Any) -> Any:
        if _is_ready(others.get("attention_mask")):  # the class would reshape it; its encoder takes it as it is
            give = partial(_with_mask, others.pop("attention_mask"))
            handle = self.base_model.register_forward_pre_hook(give, with_kwargs=True)
            try:
                return forward(self, input_ids, **others)
            finally:
                handle.remove()
        if any(others[name].ndim != 2 for name in _OF_ROWS if others.get(name) is not None):
            raise ValueError("expected masks of tokens, [pair, length]")
        rows = {name: others[name][:, None] for name in _OF_ROWS if others.get(name) is not None}
        return kind.forward(self, input_ids=input_ids[:, None], **(others | rows))

    return type(kind.__name__, (kind,), {"forward": forward, "__module__": __name__, "__doc__": kind.__doc__})


def _is_ready(mask: Any) -> bool:
    """Whether `mask` is a prepared attention mask: one per pair of tokens, or a dict with one per type of layer."""
    return isinstance(mask, dict) or (isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.ndim == 4)


def _with_mask(mask: Any, module: Any, arguments: Any, named: dict[str, Any]) -> Any:
    return arguments, named | {"attention_mask": mask}
