"""A simulated GPU: tensors computed on the CPU that report the device cuda:0.

torch's FakeTensorMode knows devices too, but autograd on "cuda" needs a torch built with CUDA. These tensors hold numbers, so
that whole stages run: an operation on a tensor left on the CPU fails as on a GPU, and every synchronization with the GPU is
recorded with its caller.

It does not simulate which kernels a GPU has, their rounding, or its memory.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from accelerate import PartialState
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_iter, tree_map

CUDA = torch.device("cuda:0")
_no_dispatch = torch._C._DisableTorchDispatch
_READS = ("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__", "__array__", "__contains__")
_DATA_DEPENDENT = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal", "bincount")


class OnCuda(Tensor):
    """A CPU tensor that reports the device cuda:0."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA

    is_cuda = property(lambda self: True)  # type: ignore[assignment]
    is_cpu = property(lambda self: False)  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        _check_devices(func, args, kwargs)
        if _waits(func, args):
            _note(func.overloadpacket.__name__)
        with _no_dispatch():
            outputs = func(*args, **kwargs)
        inputs = {id(tensor) for tensor in tree_iter((args, kwargs)) if isinstance(tensor, Tensor)}
        return tree_map(lambda each: _labelled(each) if id(each) not in inputs else each, outputs)


_notes: Counter[str] = Counter()


def _labelled(value: Any) -> Any:
    if not isinstance(value, Tensor) or isinstance(value, OnCuda):
        return value
    with _no_dispatch():
        return Tensor._make_subclass(OnCuda, value, value.requires_grad)


def _unlabelled(value: Tensor) -> Tensor:
    with _no_dispatch():
        return Tensor._make_subclass(Tensor, value.detach()).clone()


def _check_devices(func: Any, args: Any, kwargs: Any) -> None:
    """Raise if a tensor on the CPU meets one on the GPU, except for a scalar, or in a copy."""
    if func.overloadpacket is torch.ops.aten.copy_:
        if not (isinstance(args[0], OnCuda) and isinstance(args[1], OnCuda)):
            _note("copy_")
        return
    for tensor in tree_flatten((args, kwargs))[0]:
        if isinstance(tensor, Tensor) and not isinstance(tensor, OnCuda) and tensor.dim() > 0:
            raise RuntimeError(
                f"{func}: expected all tensors to be on the same device, found cuda:0 and a cpu tensor of {list(tensor.shape)}"
            )


def _waits(func: Any, args: Any) -> bool:
    name = func.overloadpacket.__name__
    if name in _DATA_DEPENDENT:
        return True
    masks = args[1] if name in ("index", "index_put", "index_put_", "_unsafe_index") else ()
    return any(mask is not None and mask.dtype in (torch.bool, torch.uint8) for mask in masks)


def _note(what: str) -> None:
    """Record `what` with the innermost function that belongs neither to torch nor to this file."""
    frame: Any = sys._getframe(1)
    while frame is not None and ("/torch/" in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
        frame = frame.f_back
    where = "" if frame is None else f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_code.co_name}"
    _notes[f"{where} {what}"] += 1


class _Calls(TorchFunctionMode):
    """Handles calls that name a device, and calls that read numbers."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if name == "pin_memory":
            args[0]._pinned = True
            return args[0]
        if name in ("to", "cuda", "cpu") and isinstance(args[0], Tensor):
            return _moved(func, name, args, kwargs)
        if name in _READS and args and isinstance(args[0], OnCuda):
            return _read(func, name, args, kwargs)
        if _is_cuda(kwargs.get("device")):
            kwargs["device"] = "cpu"
            if name in ("tensor", "as_tensor"):
                _note(name)
            return tree_map(_labelled, func(*args, **kwargs))
        return func(*args, **kwargs)


def _is_cuda(device: Any) -> bool:
    return device is not None and not isinstance(device, bool) and str(device).startswith("cuda")


def _moved(func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    tensor, *rest = args
    blocking = not kwargs.pop("non_blocking", False)
    target = kwargs.pop("device", None)
    if name != "to":
        target, rest = name, []
    for place, word in enumerate(rest):
        if isinstance(word, (str, torch.device)):
            target = rest.pop(place)
            blocking = blocking and not (len(rest) > place and rest.pop() is True)
            break
        if isinstance(word, Tensor):
            target, rest[place] = word.device, word.dtype
            break
    operand = tensor
    if target is not None and _is_cuda(target) != isinstance(tensor, OnCuda):
        if isinstance(tensor, OnCuda):
            _note("to cpu")
            operand = _unlabelled(tensor)
        else:
            if blocking or not getattr(tensor, "_pinned", False):
                _note("to cuda")
            operand = _labelled(tensor.detach().clone()).requires_grad_(tensor.requires_grad)
    return func(operand, *rest, **kwargs) if name == "to" and (rest or kwargs) else operand


def _read(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    if name in ("numpy", "__array__"):
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    _note(name)
    return func(_unlabelled(args[0]), *args[1:], **kwargs)


class _Autocast(torch.autocast):
    """An autocast that uses the CPU's instead of CUDA's, because the arithmetic runs on the CPU."""

    def __init__(self, device_type: str, *args: Any, **kwargs: Any) -> None:
        super().__init__("cpu" if device_type == "cuda" else device_type, *args, **kwargs)


_group: Any = torch._C._group_tensors_by_device_and_dtype


def _grouped(tensors: Any, indices: bool = False) -> Any:
    """Group tensors by the device they report: torch's own grouping, used by gradient clipping and optimizers, bypasses
    Python."""
    return {(of[0][0].device, kind): (of, places) for (_, kind), (of, places) in _group(tensors, indices).items()}


@contextmanager
def pretend_cuda() -> Iterator[None]:
    """Let accelerate find this GPU, and tensors and modules move to it, while the context is open."""
    swapped = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)  # a parameter stays the same object, as on a GPU
    state: Any = PartialState()  # accelerate's state of the machine
    with pytest.MonkeyPatch.context() as patch, _Calls():
        patch.setitem(state.__dict__, "device", CUDA)
        patch.setattr(torch, "autocast", _Autocast)
        patch.setattr(torch.cuda, "get_device_name", lambda device=None: "NVIDIA L4")
        patch.setattr(torch._C, "_group_tensors_by_device_and_dtype", _grouped)
        try:
            yield
        finally:
            torch.__future__.set_swap_module_params_on_conversion(swapped)


@contextmanager
def waits() -> Iterator[Counter[str]]:
    """Count the synchronizations with the GPU by `file:function what`; the counts are filled in when the context closes."""
    _notes.clear()
    counts: Counter[str] = Counter()
    yield counts
    counts.update(_notes)
