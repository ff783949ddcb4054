"""CPU time of a text on this machine: measured once for a shape, before its model is trained, and stored in the search's
folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from .. import store
from ..errors import CompressError
from ..files.atomic import write_text
from ..machine import cpu_name, isa, versions
from ..models.dimensions import Dimensions, usable_positions
from ..models.families import FAMILIES
from ..models.heads import HEADS
from ..pipeline import Plan
from ..pipeline.plan.changed import activation_of
from ..pipeline.random_model import export_of, write_random
from ..pipeline.stages.prune.layer_costs import cost_fields, int8_of, quantize_random
from ..quantize.methods import int8_format, quantizer_of

_LENGTH, _RUNS = 128, 30
TABLE = "latencies.json"


class Latencies:
    """The table of a search: key -> what was measured, and CPU milliseconds. Processes share it, and one measures at a time."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / TABLE, FileLock(folder / "locks" / "latencies")

    def get(self, described: Mapping[str, Any], measure: Callable[[], float]) -> float:
        """Return the milliseconds of what is `described`, measured the first time. Raises `CompressError` for a table that
        cannot be read."""
        machine = {"onnxruntime": versions()["onnxruntime"], "cpu": cpu_name(), "isa": " ".join(isa())}
        key = store.key("search_latency", 1, dict(described), {}, machine)
        with self._lock:
            table = self._read()
            if key not in table:
                table[key] = {**described, **machine, "cpu_ms": measure()}
                write_text(self._path, json.dumps(table, indent=1, sort_keys=True) + "\n")
            return float(table[key]["cpu_ms"])

    def _read(self) -> dict[str, Any]:
        if not self._path.exists():
            return {}
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))
            if all(isinstance(row["cpu_ms"], float) for row in rows.values()):
                return rows
            reason = "expected numbers in cpu_ms"
        except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
            reason = str(error)
        raise CompressError(f"{self._path}: cannot be read: {reason}; delete it and the shapes are measured again")


def shape_of(plan: Plan, sizes: Dimensions) -> dict[str, Any] | None:
    """Return what the time of a plan's last model depends on if it has these `sizes`, as JSON values.

    None if it also depends on what is not known before the model is made: the method chooses by tests what stays fp32,
    `exclude` keeps nodes out of int8, or the model makes vectors or has no layers.
    """
    name, _, precision = plan.models[-1].rpartition("-")
    int8 = int8_of(plan.recipe)
    if HEADS[plan.task.spec.kind].bare or not sizes.layers:
        return None
    if int8 is not None and ("max_drop" not in quantizer_of(int8).unused or int8.exclude):
        return None
    form = {} if int8 is None else {"format": int8_format(int8, precision), **cost_fields(int8)}
    return {
        "sizes": asdict(sizes),
        "activation": _activation(plan, name),
        "graph": export_of(plan, name).model_dump(mode="json"),
        "kind": plan.task.spec.kind,
        "pairs": plan.task.spec.pairs,
        "precision": precision,
        "int8": form,
        "length": length_of(plan, plan.source(name).config),
    }


def length_of(plan: Plan, config: dict[str, Any]) -> int:
    """Return the tokens of the text that is timed: 128, or as many as the task or the model allows."""
    return min(_LENGTH, plan.task.spec.max_length, usable_positions(config))


def untrained_latency(plan: Plan, sizes: Dimensions) -> float:
    """Return the CPU milliseconds of a model of these `sizes` with random weights, of the plan's form, exported and
    quantized to the same format."""
    name, _, _ = plan.models[-1].rpartition("-")
    int8 = int8_of(plan.recipe)
    with tempfile.TemporaryDirectory() as folder:
        file = write_random(plan, name, sizes, Path(folder))
        if int8 is not None:
            file = quantize_random(int8, file, Path(folder), tokens=sizes.vocabulary)
        return cpu_milliseconds(file, length_of(plan, plan.source(name).config))


def cpu_milliseconds(onnx: Path, length: int) -> float:
    """Return the median CPU milliseconds of one text of `length` tokens on one thread."""
    from ..bench import BenchSpec, Candidate, measure

    runtimes = measure([Candidate("model", onnx, "onnx")], BenchSpec(((1, length),), runs=_RUNS))
    cpu = runtimes["model"].latency[0].cpu_p50
    if cpu is None:
        raise RuntimeError("what is measured here has a CPU time")
    return cpu


def _activation(plan: Plan, name: str) -> str:
    config = plan.source(name).config
    return activation_of(plan.nodes, name) or str(config.get(FAMILIES[config["model_type"]].own_name("hidden_act")))
