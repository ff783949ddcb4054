"""Tokenizers that do not distinguish the two texts of a pair."""

from __future__ import annotations

import json
from typing import Any

import tokenizers

from ..errors import CompressError


def without_segments(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return the tokenizer with segment 0 for every token; a copy, unless it has no other. Raises `CompressError` if it puts special tokens
    around a pair in a way that is not known here."""
    pair = tokenizer.encode("a", "a")
    if not any(pair.type_ids):
        return tokenizer
    document = json.loads(tokenizer.to_str())
    document["post_processor"] = _of_one_segment(document["post_processor"])
    own = tokenizers.Tokenizer.from_str(json.dumps(document))
    same = own.encode("a", "a")
    if same.ids != pair.ids or any(same.type_ids):
        raise CompressError(
            f"post_processor: expected TemplateProcessing or BertProcessing, found {(document['post_processor'] or {}).get('type')}"
        )
    return own


def _of_one_segment(processor: Any) -> Any:
    """Return a post-processor with segment 0 for each part of a text or a pair; any other kind as it is."""
    if not isinstance(processor, dict):
        return processor
    if processor.get("type") == "BertProcessing":
        processor = _template(*processor["cls"], *processor["sep"])
    if processor.get("type") == "TemplateProcessing":
        return processor | {name: [*map(_in_first_segment, processor[name])] for name in ("single", "pair")}
    if processor.get("type") == "Sequence":
        return processor | {"processors": [*map(_of_one_segment, processor["processors"])]}
    return processor


def _in_first_segment(piece: dict[str, Any]) -> dict[str, Any]:
    return {name: fields | {"type_id": 0} for name, fields in piece.items()}


def _template(cls: str, cls_id: int, sep: str, sep_id: int) -> dict[str, Any]:
    """Return BertProcessing as a template, which says the segment of each part."""
    first, last = ({"SpecialToken": {"id": token, "type_id": 0}} for token in (cls, sep))
    one, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    special = {name: {"id": name, "ids": [number], "tokens": [name]} for name, number in ((cls, cls_id), (sep, sep_id))}
    return {
        "type": "TemplateProcessing",
        "single": [first, one, last],
        "pair": [first, one, last, other, last],
        "special_tokens": special,
    }
