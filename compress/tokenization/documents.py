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
    copy = dict(processor)
    for name in ("sep", "cls"):
        if name in copy:
            token, old = copy[name]
            copy[name] = [token, number(old)]
    if "special_tokens" in copy:
        special = copy["special_tokens"].items()
        copy["special_tokens"] = {name: {**each, "ids": [*map(number, each["ids"])]} for name, each in special}
    if "processors" in copy:
        copy["processors"] = [with_numbers(each, number) for each in copy["processors"]]
    return copy
