"""A tokenizer in the form of its tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import tokenizers


def parts_of(tokenizer: tokenizers.Tokenizer) -> dict[str, Any]:
    """Return the contents of tokenizer.json, without truncation and padding."""
    return {**json.loads(tokenizer.to_str()), "truncation": None, "padding": None}


def with_numbers(processor: Any, number: Callable[[int], int]) -> Any:
    """Return a post-processor with `number` applied to each token id: in BertProcessing and RobertaProcessing, in the special tokens of
    templates, and in all of these inside a Sequence."""
    if not isinstance(processor, dict):
        return processor
    found = dict(processor)
    for name in ("sep", "cls"):
        if name in found:
            token, old = found[name]
            found[name] = [token, number(old)]
    if "special_tokens" in found:
        special = found["special_tokens"].items()
        found["special_tokens"] = {name: {**each, "ids": [*map(number, each["ids"])]} for name, each in special}
    if "processors" in found:
        found["processors"] = [with_numbers(each, number) for each in found["processors"]]
    return found
