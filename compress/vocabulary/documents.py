"""A tokenizer as its tokenizer.json has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import tokenizers


def parts_of(tokenizer: tokenizers.Tokenizer) -> dict[str, Any]:
    """One that neither cuts nor pads."""
    return {**json.loads(tokenizer.to_str()), "truncation": None, "padding": None}


def with_numbers(processor: Any, number: Callable[[int], int]) -> Any:
    """A post-processor in which `number` takes the place of each token's number: those of a BertProcessing and a RobertaProcessing, the
    templates' special tokens, and all of these in a Sequence."""
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
