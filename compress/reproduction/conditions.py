"""What figures depend on beside their inputs: machine, versions, threads, code."""

from __future__ import annotations

from ..provenance import Code
from ..results import Result
from .compared import Condition

# What computes, converts or tokenizes; the others cannot move a figure.
_LIBRARIES = (
    "torch", "onnxruntime", "transformers", "tokenizers", "numpy", "onnx", "onnxscript", "neural-compressor", "torchao",
)  # fmt: skip


def conditions_of(recorded: Result, now: Result) -> tuple[Condition, ...]:
    then, here = recorded.machine, now.machine
    pairs = [
        ("CPU", then.cpu, here.cpu),
        ("vector extensions", ", ".join(then.isa), ", ".join(here.isa)),
        ("GPU", then.gpu, here.gpu),
        ("threads", _threads(recorded), _threads(now)),
        *((name, recorded.versions.get(name), now.versions.get(name)) for name in _LIBRARIES),
    ]
    found = [Condition(name=name, recorded=old, now=new, same=old == new) for name, old, new in pairs]
    return (*found, _code(recorded, now))


def are_exact(conditions: tuple[Condition, ...]) -> bool:
    """Whether the same computation gives the same bits: all that it depends on is the same, and no GPU trains, which adds up in any
    order."""
    return all(condition.same and (condition.name != "GPU" or condition.now is None) for condition in conditions)


def _threads(result: Result) -> str | None:
    threads = result.settings.get("threads")
    return None if threads is None else str(threads)


def _code(recorded: Result, now: Result) -> Condition:
    """The code that made all of a result, stages and predictions too, which may be older than the result. Results of before they were
    recorded do not say it."""
    then, here = _codes(recorded), _codes(now)
    texts = ["; ".join(map(str, {code.source: code for code in codes if code}.values())) for codes in (then, here)]
    same = len({code.source if code else None for code in (*then, *here)}) == 1 and None not in then
    return Condition(name="code", recorded=texts[0] or None, now=texts[1] or None, same=same)


def _codes(result: Result) -> list[Code | None]:
    return [result.code, *(stage.code for stage in result.stages), *(model.code for model in result.models)]
