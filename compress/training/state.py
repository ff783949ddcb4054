"""What a resumed run needs to continue bit for bit, in one safetensors file that is whole or absent."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn


@dataclass
class Progress:
    """Where a run stands: optimizer steps done, the best tuning score so far and the step it was at."""

    step: int = 0
    best_score: float | None = None
    best_step: int | None = None
    history: list[dict[str, float]] = field(default_factory=list)


def trainable(modules: Iterable[nn.Module]) -> dict[str, Tensor]:
    """Every distinct tensor of the modules that training changes; shared ones once."""
    named: dict[str, Tensor] = {}
    seen: set[int] = set()
    for index, module in enumerate(modules):
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                named[f"{index}.{name}"] = tensor
    return named


def save_weights(path: Path, modules: Iterable[nn.Module]) -> None:
    """The weights alone, whole or absent."""
    _write(path, {name: tensor.detach().contiguous() for name, tensor in trainable(modules).items()}, {})


def load_weights(path: Path, modules: Iterable[nn.Module]) -> None:
    """Put weights of `save_weights` back."""
    tensors = load_file(path)
    with torch.no_grad():
        for name, tensor in trainable(modules).items():
            tensor.copy_(tensors[name])


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Beside `path`, flushed to disk, renamed: a kill at any moment leaves the old file or the new one."""
    temporary = path.with_suffix(".tmp")
    save_file(tensors, temporary, metadata=metadata)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)


def save(path: Path, progress: Progress, modules: Iterable[nn.Module], optimizer: torch.optim.Optimizer) -> None:
    """All that `restore` needs, in one file."""
    tensors = {f"model.{name}": tensor.detach().contiguous() for name, tensor in trainable(modules).items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in moments.items()}
    tensors["rng.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors |= {f"rng.cuda.{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())}
    _write(path, tensors, {"progress": json.dumps(asdict(progress))})


def restore(path: Path, modules: Iterable[nn.Module], optimizer: torch.optim.Optimizer) -> Progress | None:
    """Put the saved state back; None when there is none to use (absent, or not a whole file)."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (FileNotFoundError, SafetensorError):
        return None
    with torch.no_grad():
        for name, tensor in trainable(modules).items():
            tensor.copy_(tensors[f"model.{name}"])
    _restore_optimizer(optimizer, tensors)
    torch.set_rng_state(tensors["rng.cpu"])
    cuda = sorted((name for name in tensors if name.startswith("rng.cuda.")), key=lambda name: int(name.split(".")[2]))
    if cuda and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([tensors[name] for name in cuda])
    return Progress(**json.loads(metadata["progress"]))


def _restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, moment = name.split(".", 2)
            state.setdefault(int(index), {})[moment] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
