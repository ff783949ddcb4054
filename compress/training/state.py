"""Everything a resumed run needs to continue bit for bit, in one safetensors file that is complete or absent.

All processes call the functions that save, and the first writes. The file does not depend on whether weights were sharded, or the word
table was cut.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..files.atomic import replacing
from ..processes import ranks
from .sharded_tensors import fill_tensor, full_tensor, is_sharded, shard_like

# (parameter, tensor of its shape) -> the tensor converted between memory and file, if shapes differ.
Reshape = Callable[[Tensor, Tensor], Tensor]


UNKNOWN: dict[str, Any] = {}


def _identity(parameter: Tensor, tensor: Tensor) -> Tensor:
    return tensor


@dataclass
class Progress:
    """State of a run: optimizer steps done, the best tuning score so far and its step.

    `micro_batch_size`: examples per forward, once memory ran out for more. `conditions`: each set of machine settings that steps were taken
    under, JSON values; `UNKNOWN` for steps before these were recorded.
    """

    step: int = 0
    best_score: float | None = None
    best_step: int | None = None
    history: list[dict[str, float]] = field(default_factory=list)
    micro_batch_size: int | None = None
    conditions: list[dict[str, Any]] = field(default_factory=list)


class Snapshot:
    """A snapshot of random generators and buffers, which a forward changes besides gradients."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._generators = generators()
        self._buffers = [(buffer, buffer.clone()) for module in modules for buffer in module.buffers()]

    @torch.no_grad()
    def restore(self) -> None:
        set_generators(self._generators)
        for buffer, old in self._buffers:
            buffer.copy_(old)

    @torch.no_grad()
    def take_back_moves(self, weight: float) -> list[Tensor]:
        """Return how far forwards have moved each floating-point buffer, such as a moving range, times `weight`; restore them."""
        moves = []
        for buffer, old in self._floating:
            moves.append((buffer - old) * weight)
            buffer.copy_(old)
        return moves

    @torch.no_grad()
    def move(self, moves: Iterable[Tensor]) -> None:
        """Set each floating-point buffer to where its move leads from the snapshot."""
        for (buffer, old), move in zip(self._floating, moves, strict=True):
            buffer.copy_(old + move)

    @property
    def _floating(self) -> list[tuple[Tensor, Tensor]]:
        return [(buffer, old) for buffer, old in self._buffers if buffer.is_floating_point()]


def generators() -> dict[str, Tensor]:
    """Return the states of this process's random generators."""
    states = {"rng.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"rng.cuda.{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def set_generators(states: Mapping[str, Tensor]) -> None:
    """Restore the states from `generators`; those of absent devices are ignored."""
    torch.set_rng_state(states["rng.cpu"])
    cuda = sorted((name for name in states if name.startswith("rng.cuda.")), key=lambda name: int(name.split(".")[2]))
    if cuda and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([states[name] for name in cuda[: torch.cuda.device_count()]])


def trainable(modules: Iterable[nn.Module]) -> dict[str, Tensor]:
    """Return every distinct parameter and buffer of the modules; shared ones once."""
    named: dict[str, Tensor] = {}
    seen: set[int] = set()
    for index, module in enumerate(modules):
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                named[f"{index}.{name}"] = tensor
    return named


def save_weights(path: Path, modules: Iterable[nn.Module]) -> None:
    """Save the weights alone; the file is complete or absent."""
    _write(path, _gather_tensors(trainable(modules)), {})


def _gather_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the whole tensors in the first process; the others return {}, but take part in gathering."""
    whole = {}
    for name, tensor in tensors.items():
        every = full_tensor(tensor).contiguous()
        if ranks.is_first():
            whole[name] = every.cpu() if is_sharded(tensor) else every
    return whole


def load_weights(path: Path, modules: Iterable[nn.Module]) -> None:
    """Load weights saved by `save_weights`."""
    tensors = load_file(path)
    for name, tensor in trainable(modules).items():
        fill_tensor(tensors[name], tensor)


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a file so that a kill at any moment leaves the old or the new one."""
    if not ranks.is_first():
        return
    with replacing(path) as part:
        save_file(tensors, part, metadata=metadata)


def save(
    path: Path,
    progress: Progress,
    modules: Iterable[nn.Module],
    optimizer: torch.optim.Optimizer,
    drawn: Sequence[Mapping[str, Tensor]] = (),
    to_file: Reshape = _identity,
) -> None:
    """Save everything that `restore` needs, in one file. `drawn`: the `generators` of every process; default: this one's. `to_file`:
    converts the optimizer's state of a parameter."""
    tensors = {f"model.{name}": tensor for name, tensor in trainable(modules).items()}
    trained = _trained_parameters(optimizer)
    for index, moments in optimizer.state_dict()["state"].items():
        kept = {name: to_file(trained[index], torch.as_tensor(value)) for name, value in moments.items()}
        tensors |= {f"optimizer.{index}.{name}": value for name, value in kept.items()}
    tensors = _gather_tensors(tensors)
    for rank, states in enumerate(drawn or [generators()]):
        tensors |= {_of_process(rank) + name: state for name, state in states.items()}
    _write(path, tensors, {"progress": json.dumps(asdict(progress))})


def _of_process(rank: int) -> str:
    return f"process.{rank}." if rank else ""


def restore(
    path: Path,
    modules: Iterable[nn.Module],
    optimizer: torch.optim.Optimizer,
    rank: int = 0,
    from_file: Reshape = _identity,
) -> Progress | None:
    """Restore the saved state; return None if there is none (the file is absent or incomplete).

    The generators are those of process `rank`; if the state is of fewer processes, they are unchanged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (FileNotFoundError, SafetensorError):
        return None
    for name, tensor in trainable(modules).items():
        fill_tensor(from_file(tensor, tensors[f"model.{name}"]), tensor)
    _restore_optimizer(optimizer, tensors, from_file)
    own = _of_process(rank)
    states = {name.removeprefix(own): tensor for name, tensor in tensors.items() if name.startswith(f"{own}rng.")}
    if states:
        set_generators(states)
    return Progress(**{"conditions": [UNKNOWN], **json.loads(metadata["progress"])})


def _trained_parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], from_file: Reshape) -> None:
    trained = _trained_parameters(optimizer)
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, moment = name.split(".", 2)
            own = trained[int(index)]
            tensor = from_file(own, tensor)
            state.setdefault(int(index), {})[moment] = shard_like(tensor, own) if tensor.shape == own.shape else tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
