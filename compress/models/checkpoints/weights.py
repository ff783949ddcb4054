"""The weights of a checkpoint folder: safetensors only; a pickle is never opened."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import CompressError
from ...files.regular import open_regular
from ...runtime.folder import read_json

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_FOREIGN = (".h5", ".keras", ".msgpack", ".gguf", ".onnx")  # Keras, TensorFlow, Flax, llama.cpp, ONNX
_WRAPPERS = {
    "_orig_mod.": "a model compiled by torch",
    "module.": "a model in DataParallel",
}  # prefix of names: what adds it
_FLOATS = ("F64", "F32", "F16", "BF16")


def weight_files(folder: Path) -> list[Path]:
    """Return `model.safetensors`, or else the shards in its index, each opened once to check that it is complete.

    Raises `CompressError` for a missing, pickled or truncated file.
    """
    if (folder / WEIGHTS).exists():
        files = [folder / WEIGHTS]
    elif (folder / _INDEX).exists():
        files = [folder / name for name in _shards(folder)]
    else:
        raise CompressError(f"{folder}: expected {WEIGHTS}; {_other_format(folder)}")
    for path in files:
        _shapes(path)
    return files


def _other_format(folder: Path) -> str:
    pickles = sorted(path.name for suffix in PICKLES for path in folder.glob(f"*{suffix}"))
    if (folder / "adapter_config.json").is_file() and all(name.startswith("adapter_") for name in pickles):
        return "found an adapter, without the model that it changes: merge the two, with peft's `merge_and_unload()`, and save the result"
    if pickles:
        return (
            f"found {pickles[0]}, a pickle, which can run code when loaded: convert it to safetensors, by the command "
            'under "Use a teacher of your own" in docs/recipes.md'
        )
    if (folder / "bundle.json").is_file():
        return "found a bundle, whose weights are in ONNX: `compress ship --with-checkpoint` makes one that has both"
    other = next((path.name for path in sorted(folder.iterdir()) if path.suffix in (".safetensors", *_FOREIGN)), None)
    if other is None or other.endswith(".safetensors"):
        return f"found {other or 'none'}"
    return f"found {other}, the format of another framework: convert it to safetensors"


def _shards(folder: Path) -> list[str]:
    """Return the names of the files in `folder` that the index of a sharded checkpoint lists."""
    path = folder / _INDEX
    try:
        names = sorted(set(read_json(path)["weight_map"].values()))
    except (KeyError, AttributeError, TypeError) as error:
        raise CompressError(f"{path}: not the index of a sharded checkpoint: {error!r:.200}") from None
    there = {file.name for file in folder.glob("*.safetensors")}
    for name in names:
        if name not in there:
            raise CompressError(
                f"{folder / str(name)!s:.300}: no such file; {_INDEX} says that it holds part of the weights"
            )
    if not names:
        raise CompressError(f"{path}: weight_map: expected the name of a file for each weight; found none")
    return names


def _shapes(path: Path) -> dict[str, tuple[str, list[int]]]:
    """Return (type, shape) of each tensor, from the file's header."""
    from safetensors import SafetensorError, safe_open

    try:
        open_regular(path, "a safetensors file").close()
        with safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            return {name: (part.get_dtype(), part.get_shape()) for name, part in slices.items()}
    except (SafetensorError, OSError) as error:
        raise CompressError(f"{path}: not a complete safetensors file: {error}") from None


def tensor_names(folder: Path) -> set[str]:
    """Return the names of all tensors. Raises `CompressError` for those of a model inside one of torch's wrappers."""
    names = {name for path in weight_files(folder) for name in _shapes(path)}
    for prefix, wrapper in _WRAPPERS.items():
        if names and all(name.startswith(prefix) for name in names):
            raise CompressError(
                f"{folder}: the names of its weights begin with `{prefix}`: {wrapper} was saved, not the model in it; "
                f"save the latter, MODEL.{prefix}save_pretrained(FOLDER), or take `{prefix}` off the names"
            )
    return names


def count_weights(folder: Path) -> int:
    """Return how many numbers all tensors of the checkpoint have."""
    return sum(math.prod(shape) for path in weight_files(folder) for _, shape in _shapes(path).values())


def layers_in(folder: Path) -> int:
    """Return how many layers the weights have by their names; 0 if those are not numbered, as in ALBERT. transformers silently drops layers
    beyond the config's."""
    numbers = (re.search(r"(?:^|\.)layers?\.([0-9]{1,9})\.", name) for name in tensor_names(folder))
    return max((int(match[1]) + 1 for match in numbers if match), default=0)


def load_weights(folder: Path) -> dict[str, Tensor]:
    """Return every tensor by name. Raises `CompressError` for integer weights, such as quantized ones."""
    from safetensors.torch import load_file

    state: dict[str, Tensor] = {}
    for path in weight_files(folder):
        for name, (kind, _) in _shapes(path).items():
            if kind not in _FLOATS and name.endswith((".weight", ".bias")):
                raise CompressError(f"{path}: {name}: expected one of {', '.join(_FLOATS)}; found {kind}")
        state |= load_file(path)
    return state
