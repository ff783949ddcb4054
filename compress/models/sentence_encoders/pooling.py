"""Pooling of a sentence encoder's last states to a vector: the mean of the tokens, or the first one's, normalized to length 1.

sentence-transformers' folders configure it in `1_Pooling/config.json`, this package's checkpoints in config.json, as `sentence_pooling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import CompressError
from ..families import FAMILIES
from .folders import pooling_file, read_document
from .vector_layers import loading_fields

if TYPE_CHECKING:
    from torch import Tensor

Pooling = Literal["mean", "cls"]
FIELD = "sentence_pooling"  # of config.json
# Fields in the pooling file of sentence-transformers' folders.
MODES: dict[Pooling, str] = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}
_SAME_DIRECTION: dict[str, Pooling] = {"mean_sqrt_len_tokens": "mean"}  # at length 1
_MODE = "pooling_mode_"


def read_pooling(folder: Path | None, config: Mapping[str, Any]) -> tuple[Pooling, bool]:
    """Return (pooling of the checkpoint in `folder`, whether its files specify it); the default is the mean.

    Raises `CompressError`, naming the file, if vectors are made in another way or from modules not supported here.
    """
    if FIELD in config:
        return _check_side(
            config[FIELD], config, Path("config.json") if folder is None else folder / "config.json"
        ), True
    if folder is None:
        return "mean", False
    path = pooling_file(folder)
    document = read_document(path, dict)
    if document is None:
        return "mean", False
    modes = [name.removeprefix(_MODE) for name, is_on in document.items() if name.startswith(_MODE) and is_on]
    modes = [str(document["pooling_mode"])] if not modes and "pooling_mode" in document else modes
    names = {field.removeprefix(_MODE): mode for mode, field in MODES.items()} | _SAME_DIRECTION
    modes = [names.get(mode, mode) for mode in modes]
    known: list[Pooling] = [mode for mode in MODES if modes == [mode]]
    if known:
        return _check_side(known[0], config, path), True
    raise CompressError(f"{path}: pooling: expected either mean or cls; found {', '.join(modes) or 'none'}")


def vector_fields(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of transformers' config for the encoder in `folder`: all of `config`, its config.json or a replacement, the
    pooling, and what the states to be pooled need. Raises `CompressError` like `read_pooling`."""
    return {**config, FIELD: read_pooling(folder, config)[0], **loading_fields(config)}


def _check_side(pooling: Pooling, config: Mapping[str, Any], path: Path) -> Pooling:
    """Return `pooling`. Raises `CompressError` if it takes the first token and the family has its classification token last."""
    if pooling == "cls" and FAMILIES[config["model_type"]].tokenizer.pads_left:
        title = FAMILIES[config["model_type"]].title
        raise CompressError(
            f"{path}: pooling: found cls, the first token, and {title} has its own last, with padding before the text: give an encoder "
            "whose vectors are the mean of the tokens"
        )
    return pooling


def sentence_vectors(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return vectors [batch, hidden] of length 1 from last states [batch, length, hidden]; `mask` [batch, length] is 1 at real tokens."""
    import torch.nn.functional as F

    if pooling == "cls":
        return F.normalize(states[:, 0], dim=-1)
    real = mask[..., None].to(states.dtype)
    return F.normalize((states * real).sum(1) / real.sum(1).clamp(min=1), dim=-1)


def pooling_of(model: Any) -> Pooling:
    """Return the pooling of a model that was loaded or made for vectors; the mean if its config has none."""
    return getattr(model.config, FIELD, "mean")


def read_states(model: Any, states: Tensor) -> Tensor:
    """Return the last states [batch, length, hidden] that vectors are made of: all, or the first token's, [batch, 1, hidden]."""
    return states[:, :1] if pooling_of(model) == "cls" else states
