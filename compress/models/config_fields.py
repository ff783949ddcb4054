"""The part of a checkpoint's config.json that its family knows.

Everything else in the file is dropped, so that it reaches neither transformers nor a student, a checkpoint or a bundle. transformers sets
any key as an attribute of its config: `_attn_implementation: owner/repo:fn` makes it fetch code from a hub, and a value of a wrong type
fails with an obscure error, or with none.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import CompressError
from .families import FAMILIES
from .families.fields import allowed_values
from .pruned.shape import check_pruned


def allowed_fields(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the config at `path` that its family knows, as in JSON.

    Raises `CompressError` naming the file and the key, for an unknown family or a value that its key cannot have.
    """
    family = document.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise CompressError(f"{path}: model_type: expected one of {', '.join(FAMILIES)}; found {reprlib.repr(family)}")
    fields = {"model_type": family, **allowed_values(path, document, FAMILIES[family].fields)}
    if "id2label" in fields:
        fields["id2label"] = {key: str(name) for key, name in fields["id2label"].items()}
        fields["label2id"] = {name: int(key) for key, name in fields["id2label"].items()}
        fields.pop("num_labels", None)  # implied by the names
    _check_padding(path, fields)
    check_pruned(path, fields)
    return fields


def _check_padding(path: Path, fields: dict[str, Any]) -> None:
    """Check that the padding id is a row of the word table and, if positions are counted from it, of the position table."""
    tables = ["vocab_size"]
    if FAMILIES[fields["model_type"]].embeddings.positions_after_padding:
        if fields.get("pad_token_id") is None:
            fields["pad_token_id"] = 1  # as transformers does
        tables.append("max_position_embeddings")
    padding = fields.get("pad_token_id") or 0
    for name in tables:
        if name in fields and padding >= fields[name]:
            raise CompressError(f"{path}: pad_token_id: expected less than {name}, {fields[name]}; found {padding}")
