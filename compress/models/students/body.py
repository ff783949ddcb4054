"""Move a trained encoder into a classifier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from ..weights import load_weights

if TYPE_CHECKING:
    from torch import Tensor


def load_body(student: Any, folder: Path, *, pooler: bool = False) -> None:
    """Put the embeddings and layers of the encoder checkpoint `folder` into `student`, a classifier.

    The classifier stays as it is, and so does the pooler, unless `pooler` says that the encoder's was trained: no
    loss on hidden states trains one.
    Raises `CompressError` for an encoder of another architecture or of other sizes.
    """
    found, wanted = _read(folder, student.base_model_prefix), _once(student.base_model.state_dict())
    if not pooler:
        found, wanted = _without_pooler(found), _without_pooler(wanted)
    for name in sorted(wanted.keys() | found.keys()):
        sides = [tuple(state[name].shape) if name in state else "none" for state in (wanted, found)]
        if sides[0] != sides[1]:
            raise CompressError(
                f"{folder}: not an encoder of this student's sizes: {name}: expected {sides[0]}, found {sides[1]}"
            )
    student.base_model.load_state_dict(found, strict=False)


def _read(folder: Path, prefix: str) -> dict[str, Tensor]:
    """The weights of a checkpoint of an encoder, or of the encoder inside one of a model with a head."""
    state = load_weights(folder)
    inside = {name.removeprefix(f"{prefix}."): state[name] for name in state if name.startswith(f"{prefix}.")}
    return inside or state


def _without_pooler(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state.items() if not name.startswith("pooler.")}


def _once(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """What layers share under its first name alone, as checkpoints hold it."""
    first: dict[int, str] = {}
    return {name: tensor for name, tensor in state.items() if first.setdefault(tensor.data_ptr(), name) == name}
