"""What figures depend on besides their inputs: machine, threads, processes, versions, code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..provenance import Code, recorded_code
from ..quantize.methods import QUANTIZERS
from ..results import ModelResult, Result
from .figures import Condition

# Libraries that compute, convert or tokenize; the others cannot change a figure.
_LIBRARIES = (
    "torch", "onnxruntime", "transformers", "tokenizers", "numpy", "onnx", "onnxscript", "neural-compressor", "torchao",
)  # fmt: skip
_DEVICE = "training device"
DECIDED_BY_TIMES = "decided by measured times"
_WITHOUT_GPU = {"GPU": (None,), _DEVICE: (None, "cpu")}  # values of these conditions without a GPU


def conditions_of(recorded: Result, now: Result) -> tuple[Condition, ...]:
    then, here = recorded.machine, now.machine
    pairs = [
        ("CPU", then.cpu, here.cpu),
        ("vector extensions", ", ".join(then.isa), ", ".join(here.isa)),
        ("GPU", then.gpu, here.gpu),
        *((name, recorded.versions.get(name), now.versions.get(name)) for name in _LIBRARIES),
    ]
    compared = [Condition(name=name, recorded=old, now=new, same=old == new) for name, old, new in pairs]
    return (*compared, *_training(recorded, now), *_timing_conditions(recorded), _code(recorded, now))


def are_exact(conditions: tuple[Condition, ...]) -> bool:
    """Whether the same computation gives the same bits: all that it depends on is the same, and no GPU trains, which adds in any order.
    Models that depend on measured times (`is_sized_by_times`) are never exact."""
    others = [each for each in conditions if each.name != DECIDED_BY_TIMES]
    return all(each.same and each.now in _WITHOUT_GPU.get(each.name, (each.now,)) for each in others)


def _timing_conditions(recorded: Result) -> Iterator[Condition]:
    """Yield a condition for stages that decide by measured times, which differ each time, so that they may choose otherwise."""
    if stages := list(timed_stages(recorded)):
        names = ", ".join(label for _, label in stages)
        yield Condition(name=DECIDED_BY_TIMES, recorded=names, now=names, same=False)


def timed_stages(result: Result) -> Iterator[tuple[str, str]]:
    """Yield (kind, label) of each stage that decides by times which it measures."""
    for stage in result.recipe.get("stages") or ():
        for kind, settings in stage.items():
            settings = settings or {}
            quantizer = QUANTIZERS.get(str(settings.get("method"))) if kind == "quantize" else None
            by_cpu = quantizer is not None and "cpu" in quantizer.depends_on
            by_latency = kind == "prune" and settings.get("latency") is not None
            if settings.get("enabled") is not False and (by_cpu or by_latency):
                yield kind, settings.get("name", kind)


def is_sized_by_times(result: Result, model: ModelResult) -> bool:
    """Whether a stage that decides by times chose the size of this model."""
    kinds = {kind for kind, _ in timed_stages(result)}
    return ("quantize" in kinds and model.precision == "int8") or ("prune" in kinds and model.name != "teacher")


def _training(recorded: Result, now: Result) -> Iterator[Condition]:
    """Yield threads, processes and device. A stage from the store may be from another command, with other ones than this."""
    for name, values in (("threads", _threads), ("processes", _processes), (_DEVICE, _devices)):
        then, here = values(recorded), values(now)
        same = len({*then, *here}) <= 1 and None not in then
        yield Condition(name=name, recorded=_join_values(then), now=_join_values(here), same=same)


def _join_values(values: Sequence[object]) -> str | None:
    texts = sorted({"not recorded" if value is None else str(value) for value in values})
    if len(texts) > 1:
        return f"{' or '.join(texts)} by stage"
    return texts[0] if texts else None


def _threads(result: Result) -> list[object]:
    return [
        result.settings.get("threads"),
        *(part.get("threads") for part in (*_training_infos(result), *_earlier(result))),
    ]


def _processes(result: Result) -> list[object]:
    return [
        *(info.get("processes", 1) for info in _training_infos(result)),
        *(part.get("processes") for part in _earlier(result)),
    ]


def _devices(result: Result) -> list[object]:
    return [part.get("device") for part in (*_training_infos(result), *_earlier(result))]


def _training_infos(result: Result) -> list[Mapping[str, Any]]:
    """Info of the training stages: only these have steps."""
    return [stage.info for stage in result.stages if "steps" in stage.info]


def _earlier(result: Result) -> list[dict[str, Any]]:
    """Conditions of trainings before an interruption, if threads, processes, device or code were others."""
    noted = [info.get("earlier_parts") for info in _training_infos(result)]
    return [part for parts in noted if isinstance(parts, list) for part in parts if isinstance(part, dict)]


def _code(recorded: Result, now: Result) -> Condition:
    """Compare the code that made all of a result, including stages and predictions, which may be older than the result. Old results do not
    record it."""
    then, here = _codes(recorded), _codes(now)
    texts = ["; ".join(map(str, {code.source: code for code in codes if code}.values())) for codes in (then, here)]
    same = len({code.source if code else None for code in (*then, *here)}) == 1 and None not in then
    return Condition(name="code", recorded=texts[0] or None, now=texts[1] or None, same=same)


def _codes(result: Result) -> list[Code | None]:
    codes = [result.code, *(stage.code for stage in result.stages), *(model.code for model in result.models)]
    return [*codes, *map(recorded_code, _earlier(result))]
