"""What tokenizer_config.json says of how transformers reads texts: on which side it cuts those that are too long, and whether it
distinguishes the two texts of a pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from ...runtime.cutting import truncation_side
from ...runtime.folder import open_tokenizer, read_json
from ...tokenization.segments import without_segments
from ...tokenization.truncation import set_truncation_side
from ..dimensions import has_segments, read_config
from ..families import FAMILIES
from ..families.fields import Field, allowed_values, one_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONFIG = "tokenizer_config.json"
_SIDE, _INPUTS, _SEGMENTS = "truncation_side", "model_input_names", "token_type_ids"
_FIELDS = {
    _SIDE: one_of("left", "right"),
    _INPUTS: Field(
        lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value), "a list of names"
    ),
}
_INPUTS_OF = {"TokenizersBackend": ["input_ids", "attention_mask"]}  # of a class that only transformers 5 writes


def read_as_transformers(folder: Path, tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer of the checkpoint in `folder` so that it cuts where transformers cuts, and gives the segments that transformers
    gives. It cuts no text itself (`set_truncation_side`).

    Raises `CompressError` for settings that cannot be followed.
    """
    set_truncation_side(tokenizer, _settings(folder).get(_SIDE) or truncation_side(tokenizer))
    if not _leaves_segments_out(folder):
        return tokenizer
    family = FAMILIES[read_config(folder)["model_type"]]
    if family.embeddings.relative_segments:  # segment 0 everywhere is not the same as none
        raise CompressError(
            f"{folder / CONFIG}: {_INPUTS}: expected {_SEGMENTS} among them, which this family is always given here; add it, and "
            "fine-tune the checkpoint again with it"
        )
    try:
        return without_segments(tokenizer)
    except CompressError as error:
        raise CompressError(f"{folder / 'tokenizer.json'}: {error}") from None


def described_reading(folder: Path) -> str:
    """Return in words, for keys, what is unusual in how texts are read: long ones are cut on the left, or segments that the model has
    are left out; empty if nothing is."""
    side = _settings(folder).get(_SIDE) or _stored_side(folder / "tokenizer.json")
    parts = {"cut on the left": side == "left", "without segments": _leaves_segments_out(folder)}
    return ", ".join(words for words, holds in parts.items() if holds)


def _stored_side(path: Path) -> str:
    """Return the side that the tokenizer in a file cuts on; `right` if there is none, or none that can be read, which loading refuses."""
    try:
        return truncation_side(open_tokenizer(path)) if path.exists() else "right"
    except CompressError:
        return "right"


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    return allowed_values(path, read_json(path, optional=True), _FIELDS)


def _leaves_segments_out(folder: Path) -> bool:
    """Whether transformers gives the model no segments, although it has several."""
    document = read_json(folder / CONFIG, optional=True)
    listed = allowed_values(folder / CONFIG, document, _FIELDS).get(_INPUTS)
    inputs = listed or _INPUTS_OF.get(str(document.get("tokenizer_class")))
    if inputs is None or _SEGMENTS in inputs:
        return False
    family = str(read_json(folder / "config.json", optional=True).get("model_type"))
    return family in FAMILIES and has_segments(read_config(folder))
