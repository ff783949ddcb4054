"""Where and how finely training computes."""

from accelerate import Accelerator
from accelerate.state import AcceleratorState


def make_accelerator(precision: str) -> Accelerator:
    """The device at hand with autocast to `precision`: bf16, or fp32 for none.

    accelerate keeps the first precision of a process and refuses another one; runs of one
    process may differ in it.
    """
    AcceleratorState._reset_state()
    return Accelerator(mixed_precision="bf16" if precision == "bf16" else "no")
