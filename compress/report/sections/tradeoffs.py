"""Parameters, FLOPs, file size and latency are different things: say if a model shrinks one and not another."""

from __future__ import annotations

from ..text import numbers
from ..text.words import join_words

SHRUNK = 0.9


def tradeoff_sentence(
    model: str,
    *,
    teacher: str = "the teacher",
    parameters: float,
    flops: float,
    file_size: float | None = None,
    latency: tuple[str, float] | None = None,
) -> str:
    """Return a sentence if `model` is smaller than its teacher in one respect and not in another; else empty.

    Every number is the ratio of the model's to the teacher's; `file_size` and `latency`, with its shape, only if they were measured. Below
    0.9 counts as shrunk: parameter counts differ by less because of a head or a table of another length, and latencies from run to run. The
    verdict, `smaller on disk, not faster at 1 × 128` or the reverse, depends on what was measured, at the measured shape, and in a plan on
    parameters and FLOPs. It is omitted if a file was measured and no latency, because the same FLOPs take less time in int8.
    """
    ratios = {"parameters": parameters, "FLOPs per token": flops}
    ratios |= {} if file_size is None else {"file size": file_size}
    ratios |= {} if latency is None else {f"latency at {latency[0]}": latency[1]}
    smaller = [f"{name} to {numbers.percent(ratio)}" for name, ratio in ratios.items() if ratio < SHRUNK]
    same = [f"{name} ({numbers.percent(ratio)})" for name, ratio in ratios.items() if ratio >= SHRUNK]
    if not smaller or not same:
        return ""
    verdict = _verdict(parameters, flops, file_size, latency)
    return f"{model} shrinks {join_words(smaller)} of {teacher}'s; it does not shrink {join_words(same)}{verdict}."


def _verdict(parameters: float, flops: float, file_size: float | None, latency: tuple[str, float] | None) -> str:
    if file_size is not None and latency is None:
        return ""
    small = (parameters if file_size is None else file_size) < SHRUNK
    fast = (flops if latency is None else latency[1]) < SHRUNK
    if small == fast:
        return ""
    faster = "faster" if latency is None else f"faster at {latency[0]}"
    return f": smaller on disk, not {faster}" if small else f": {faster}, not smaller on disk"
