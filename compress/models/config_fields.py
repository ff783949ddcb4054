"""The part of a checkpoint's config.json that its family knows.

Everything else in the file is dropped, so that it reaches neither transformers nor a student, a checkpoint or a bundle.
transformers would set any key as an attribute of its config: `_attn_implementation: owner/repo:fn` makes it ask a hub for
code, and a wrong type ends in its own errors, or in none.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import CompressError
from .families import FAMILIES
from .families.fields import allowed_values
from .pruned_shape import check_pruned


def allowed_fields(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the config at `path` that its family knows, as JSON has it.

    Raises `CompressError` naming the file and the key, for a family that is not known and for a value that its key cannot
    have.
    """
    family = document.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise CompressError(f"{path}: model_type: expected one of {', '.join(FAMILIES)}; found {reprlib.repr(family)}")
    fields = {"model_type": family, **allowed_values(path, document, FAMILIES[family].fields)}
    if "id2label" in fields:
        fields["id2label"] = {key: str(name) for key, name in fields["id2label"].items()}
        fields["label2id"] = {name: int(key) for key, name in fields["id2label"].items()}
        fields.pop("num_labels", None)  # the names count
    _check_padding(path, fields)
    check_pruned(path, fields)
    return fields


def _check_padding(path: Path, fields: dict[str, Any]) -> None:
    """Padding is a row of the table of words and, where positions are counted from it, one of theirs."""
    tables = ["vocab_size"]
    if FAMILIES[fields["model_type"]].positions_after_padding:
        if fields.get("pad_token_id") is None:
            fields["pad_token_id"] = 1  # as transformers does
        tables.append("max_position_embeddings")
    padding = fields.get("pad_token_id") or 0
    for name in tables:
        if name in fields and padding >= fields[name]:
            raise CompressError(f"{path}: pad_token_id: expected less than {name}, {fields[name]}; found {padding}")
