"""The order in which a checkpoint's head has the classes of a task. Needs no torch unless a head is changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import CompressError
from ...runtime.kinds import output_names
from ...spec.kinds import KINDS, KindName

_OTHER_TAGS = ("E-", "L-", "S-", "U-")  # the end of an entity, and an entity of one word, in BIOES and BILOU


def label_order(
    checkpoint: tuple[str, ...], task: tuple[str, ...], *, kind: KindName, where: str
) -> tuple[int, ...] | None:
    """Return for each class of the task its row in the checkpoint's head; None if the names carry no information: the checkpoint's LABEL_0,
    LABEL_1, …, or the task's 0, 1, …, which are then the row numbers.

    Raises `CompressError` when the names or their number disagree.
    """
    if KINDS[kind].unit == "choice":  # transformers' class has one output, whatever config.json says
        return None
    expected = output_names(kind, task)
    if kind == "tagging" and any(name[:2].upper() in _OTHER_TAGS for name in checkpoint):
        raise CompressError(
            f"{where}: the checkpoint's labels {list(checkpoint)} are BIOES or BILOU, and tags are read as IOB2: {list(expected)}; "
            "--refit trains a new head"
        )
    if len(checkpoint) != len(expected):
        raise CompressError(
            f"{where}: the checkpoint has {len(checkpoint)} labels {list(checkpoint)} and the {kind} task "
            f"{len(expected)}: {list(expected)}; --refit trains a new head"
        )
    if not task or KINDS[kind].outputs:  # transformers' class defines which row is which
        return None
    checkpoint_rows = {_normalize_name(name): index for index, name in enumerate(checkpoint)}
    if set(checkpoint_rows) != {_normalize_name(name) for name in task} or len(checkpoint_rows) != len(task):
        if all(name.upper() in (f"LABEL_{index}", str(index)) for index, name in enumerate(checkpoint)):
            return None
        if list(task) == [str(index) for index in range(len(task))]:
            return None
        raise CompressError(
            f"{where}: the checkpoint's labels {list(checkpoint)} are not the task's {list(task)}; "
            "where they mean the same, give id2label in config.json the task's names; --refit trains a new head"
        )
    return tuple(checkpoint_rows[_normalize_name(name)] for name in task)


def _normalize_name(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _output_layer(model: Any) -> Any:
    head = next(getattr(model, name) for name in ("logits_proj", "qa_outputs", "classifier") if hasattr(model, name))
    return getattr(head, "out_proj", head)


def shift_outputs(model: Any, by: float | np.ndarray) -> None:
    """Subtract `by` from the logits, a number or one per label [label]: what was decided at `by` is then decided at 0, wherever the model
    is run."""
    import torch

    with torch.no_grad():
        bias = _output_layer(model).bias
        bias.sub_(torch.as_tensor(by, dtype=bias.dtype, device=bias.device))


def reorder_head(model: Any, order: list[int]) -> None:
    """Put row `order[i]` of the classifier in place i."""
    import torch

    head = _output_layer(model)
    with torch.no_grad():
        head.weight.copy_(head.weight[order].clone())
        head.bias.copy_(head.bias[order].clone())
