"""The word embedding table of a model: which rows its config names, and keeping only some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .families import FAMILIES

_SEVERAL = "special_token_ids"  # of a static model


def named_tokens(config: dict[str, Any]) -> set[int]:
    """Return the ids of the tokens that a config names; if positions are counted from the padding id, also all ids below it, so that it
    does not change."""
    family = FAMILIES[config["model_type"]]
    ids = {config[name] for name in _token_fields(family.fields) if config.get(name) is not None}
    counted = range(config["pad_token_id"] + 1) if family.embeddings.positions_after_padding else ()
    return ids.union(config.get(_SEVERAL, ()), counted)


def largest_row(model: Any, tokens: Iterable[int]) -> int:
    """Return the one of `tokens` whose row has the largest weight. If it is kept, the remaining rows of a long table round to the same int8
    (`quantize.weights.quantize_rows`)."""
    numbers = np.array(sorted(tokens))
    largest = model.get_input_embeddings().weight.detach().abs().amax(dim=1).numpy()
    return int(numbers[largest[numbers].argmax()])


def keep_rows(model: Any, kept: np.ndarray) -> None:
    """Keep only the rows `kept` of the model's word table, in place; `kept`: ascending int64, row kept[i] becomes row i. Token ids in the
    config are renumbered; those of dropped tokens become None."""
    import torch
    from torch import nn

    table, config = model.get_input_embeddings(), model.config
    new = {int(old): number for number, old in enumerate(kept)}
    padding = new.get(table.padding_idx) if table.padding_idx is not None else None
    rows = nn.Embedding(len(kept), table.embedding_dim, padding_idx=padding)
    with torch.no_grad():
        rows.weight.copy_(table.weight[torch.from_numpy(kept)])
    model.set_input_embeddings(rows)
    config.vocab_size = len(kept)
    for name in _token_fields(FAMILIES[config.model_type].fields):
        if isinstance(old := getattr(config, name, None), int):
            setattr(config, name, new.get(old))
    if special := getattr(config, _SEVERAL, ()):
        setattr(config, _SEVERAL, [new[old] for old in special if old in new])


def _token_fields(fields: Any) -> Iterator[str]:
    return (name for name in fields if name.endswith("_token_id"))
