"""The order in which a checkpoint's head has the classes of a task. Needs no torch unless a head is changed."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Any

import numpy as np

from ...errors import CompressError
from ...runtime.kinds import output_names
from ...spec.kinds import KINDS, KindName

_MOST_SHOWN = 10  # labels in a message
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
            f"{len(expected)}: {list(expected)}{_own_labels(checkpoint, task)}; --refit trains a new head"
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
            f"{where}: the checkpoint's labels {list(checkpoint)} are not the task's {list(task)}{_own_labels(checkpoint, task)}; "
            "where they mean the same, give id2label in config.json the task's names; --refit trains a new head"
        )
    return tuple(checkpoint_rows[_normalize_name(name)] for name in task)


def _own_labels(checkpoint: tuple[str, ...], task: tuple[str, ...]) -> str:
    """Return which labels only the task or only the checkpoint has, and what to do about each; nothing unless they share most."""
    in_checkpoint, in_task = ({_normalize_name(name) for name in names} for names in (checkpoint, task))
    if 2 * len(in_checkpoint & in_task) <= min(len(in_checkpoint), len(in_task)):
        return ""
    spellings = Counter(map(_normalize_name, task))
    twice = [name for name in task if spellings[_normalize_name(name)] > 1]
    new = [name for name in task if _normalize_name(name) not in in_checkpoint]
    lost = [name for name in checkpoint if _normalize_name(name) not in in_task]
    parts = [f"the task has {_shown(twice)}, which are one label to the checkpoint: write them alike"] if twice else []
    parts += [f"only the task has {_shown(new)}: correct its rows of train if these are mistakes"] if new else []
    advice = "if train lacks them, list all as `labels` in a task file"
    parts += [f"only the checkpoint has {_shown(lost)}: {advice}"] if lost else []
    return "".join(f"; {part}" for part in parts)


def _shown(names: list[str]) -> str:
    """Return labels for a message, their characters escaped where a reader could not tell them apart."""
    alike = len({unicodedata.normalize("NFC", name) for name in names}) < len(names)
    return ", ".join(map(ascii if alike else repr, names[:_MOST_SHOWN])) + (", …" if len(names) > _MOST_SHOWN else "")


def _normalize_name(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().lower().replace(" ", "_").replace("-", "_")


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
