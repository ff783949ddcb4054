"""Search for the fastest mix of int8 and fp32 matmuls that preserves enough of the fp32 model's answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from ..files.atomic import write_text
from ..spec.quantization import Quantize
from .evaluator import Evaluator, measure_file
from .int8_files import Quantization
from .node_selection import QuantizationPlan, without_matmuls
from .params import QuantizationParams, compute_params
from .sampling import Feed

_FORMATS = ("static", "dynamic")
_PARTS = ("quant", "cast", "scale", "restore")  # suffixes of the nodes of an int8 matmul, after its name and `_`
_BETTER = 0.5  # a matmul is dynamic if its divergence is below this share of the static form's


def search(
    model: ModelProto, source: Path, plan: QuantizationPlan, spec: Quantize, feeds: Sequence[Feed], evaluator: Evaluator
) -> Quantization:
    """Start with all matmuls in the better of their int8 formats, and move some to fp32 until the goal of `spec` is met.

    The goal is `max_drop` on the tuning split, and `max_flips`, compared with the lower bound `flip_rate`, on all texts of
    `evaluator`. Matmuls that diverge most for the time that int8 saves are moved first. `source`: the file of `model`. If no
    mix meets the goal, return the nearest one.
    """
    params = compute_params(model, plan, "static", spec, feeds, evaluator.feeds, smoothed=True)
    return _Search(model, source, plan, spec, params, evaluator).best()


class _Search:
    def __init__(
        self,
        model: ModelProto,
        source: Path,
        plan: QuantizationPlan,
        spec: Quantize,
        params: QuantizationParams,
        evaluator: Evaluator,
    ) -> None:
        self.model, self.source, self.plan, self.spec, self.evaluator = model, source, plan, spec, evaluator
        self.notes = _Notes(evaluator.folder / "search.json")
        alone = self._losses_alone(params)
        self.divergence = {
            name: {how: one["divergence"] for how, one in losses.items()} for name, losses in alone.items()
        }
        self.drops = {name: {how: one["drop"] for how, one in losses.items()} for name, losses in alone.items()}
        self.params = replace(
            params, int8_formats={name: _better_format(divergence) for name, divergence in self.divergence.items()}
        )
        self.saved = self.notes.once("saved", self._saved_times)

    def best(self) -> Quantization:
        order, tried = self._order(), []
        for count in range(len(order)):
            tried.append(self._try_mix(order[:count]))
            if self._excess(tried[-1]) == 0:
                break
        best = min(range(len(tried)), key=lambda count: (self._excess(tried[count]), count))
        met = self._excess(tried[best]) == 0
        kept, reached, more = (
            self._prune_fallbacks(order[:best], tried[best]) if met else (order[:best], tried[best], 0)
        )
        int8_formats = {name: how for name, how in self.params.int8_formats.items() if name not in kept}
        params = replace(self.params, int8_formats=int8_formats)
        info = {
            "goal": self._goal(),
            "goal_met": met,
            "reached": reached,
            "texts": dict(self.evaluator.texts),
            "mixes_tried": len(tried) + more,
            "fp32_fallbacks": kept,
            "blocking_matmuls": [] if met else order[:3],
            "int8_formats": int8_formats,
            "int8_formats_tried": self.params.int8_formats,
            "divergence": self.divergence,
            "drop_alone": self.drops,
            "texts_alone": self.texts,
            "saved_ms": self.saved,
            **params.summary(),
        }
        return Quantization(params, without_matmuls(self.plan, kept), info)

    def _prune_fallbacks(self, kept: list[str], reached: dict[str, Any]) -> tuple[list[str], dict[str, Any], int]:
        """Return (matmuls that must stay fp32 after all, loss of that mix, mixes tried): fp32 matmuls are tried as int8
        again, those with the largest time saving first."""
        tried = 0
        for name in sorted(kept, key=lambda name: (-self.saved[name], name)):
            fewer = [other for other in kept if other != name]
            if fewer:
                lost, tried = self._try_mix(fewer), tried + 1
                if self._excess(lost) == 0:
                    kept, reached = fewer, lost
        return kept, reached, tried

    def _losses_alone(self, params: QuantizationParams) -> dict[str, dict[str, dict[str, float]]]:
        """Map matmul -> int8 format -> divergence from fp32's logits and points lost when only this matmul is int8; other
        readers of its input read the original tensor."""
        prepared, rest = (
            params.prepared(self.model, self.plan, self.spec),
            params.beyond(self.model, self.plan, self.spec),
        )
        fp32 = self.evaluator.few(self.source)
        score, self.texts = self.evaluator.score_few(fp32), len(fp32)
        losses: dict[str, dict[str, dict[str, float]]] = {}
        for number, name in enumerate(self.plan.int8):
            self.evaluator.on_progress(number, len(self.plan.int8))
            others = (*self.plan.kept, *self.plan.weight_only)
            alone = QuantizationPlan(int8=(name,), weight_only=(), kept=others, tables=())
            forms = {int8_format: replace(rest, int8_formats={name: int8_format}) for int8_format in _FORMATS}

            def measured(form: QuantizationParams, alone: QuantizationPlan = alone) -> dict[str, float]:
                logits = measure_file(form.applied(prepared, alone, self.spec), self.evaluator.few)
                diverged = self.evaluator.kind.fidelity.divergence(fp32, logits)
                return {"divergence": diverged, "drop": round(score - self.evaluator.score_few(logits), 4)}

            losses[name] = {
                int8_format: self.notes.once(f"{int8_format} {name}", lambda form=form: measured(form))
                for int8_format, form in forms.items()
            }
        self.evaluator.on_progress(len(self.plan.int8), len(self.plan.int8))
        return losses

    def _saved_times(self) -> dict[str, float]:
        """Map each matmul to the milliseconds that int8 saves, by the profiles of both graphs; its nodes are named after it."""
        before = self.evaluator.times(self.source)
        after = measure_file(self.params.applied(self.model, self.plan, self.spec), self.evaluator.times)
        own = {
            name: sum(
                time for node, time in after.items() if node.startswith(tuple(f"{name}_{part}" for part in _PARTS))
            )
            for name in self.plan.int8
        }
        return {name: round(before.get(name, 0.0) - own[name], 6) for name in self.plan.int8}

    @cached_property
    def _fp32(self) -> np.ndarray:
        return self.evaluator.all(self.source)

    def _order(self) -> list[str]:
        """Return the matmuls by decreasing divergence per time saved. One that int8 slows down counts as the least saver."""
        least = min((time for time in self.saved.values() if time > 0), default=1.0)
        worth = {
            name: self.divergence[name][int8_format] / max(self.saved[name], least)
            for name, int8_format in self.params.int8_formats.items()
        }
        return sorted(worth, key=lambda name: (-worth[name], name))

    def _try_mix(self, kept: Sequence[str]) -> dict[str, Any]:
        """Return the loss of the mix with `kept` in fp32, as from `Evaluator.losses_against`."""
        return self.notes.once(f"kept {' '.join(sorted(kept))}", lambda: self._loss_of_mix(kept))

    def _loss_of_mix(self, kept: Sequence[str]) -> dict[str, Any]:
        mix = self.params.applied(self.model, without_matmuls(self.plan, kept), self.spec)
        return self.evaluator.losses_against(self._fp32, measure_file(mix, self.evaluator.all))

    def _goal(self) -> dict[str, float]:
        return {"drop": self.spec.max_drop} | ({"flips": self.spec.max_flips} if self.evaluator.kind.decisions else {})

    def _excess(self, lost: Mapping[str, Any]) -> float:
        """Return by how much a mix misses the goal, relative to what is allowed, summed; 0 if it meets it."""
        losses = {"drop": lost["drop"], "flips": lost.get("flips_judged")}
        return sum(max(0.0, losses[name] - most) / max(most, 0.01) for name, most in self._goal().items())


def _better_format(divergence: Mapping[str, float]) -> str:
    return "dynamic" if divergence["dynamic"] < _BETTER * divergence["static"] else "static"


class _Notes:
    """Measurements in a JSON file that is complete after every one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = self._read()

    def _read(self) -> dict[str, Any]:
        """Return the stored measurements, or none if the file is incomplete: then all are repeated."""
        try:
            notes = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return notes if isinstance(notes, dict) else {}

    def once(self, name: str, measure: Callable[[], Any]) -> Any:
        if name not in self._known:
            self._known[name] = measure()
            write_text(self._path, json.dumps(self._known))
        return self._known[name]
