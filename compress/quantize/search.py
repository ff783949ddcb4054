"""The fastest mix of int8 and fp32 products that keeps what it must of the fp32 model's answers."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from ..fidelity import flipped, logit_difference, probabilities
from ..graphs import write_model
from ..spec.quantization import Quantize
from .choosing import Choice
from .sampling import Feed
from .settling import Settled, settle

_LAYOUTS = ("static", "dynamic")
_PARTS = ("quant", "cast", "scale", "restore")  # what the nodes of an int8 product are called after its name and a `_`
_TINY = 1e-30
_BETTER = 0.5  # of the static form's divergence: what a product's dynamic form must be below to be taken


@dataclass(frozen=True)
class Judge:
    """What a search asks, all of it of texts that were put aside from training.

    `few`, `all`: graph file -> logits [text, class] of some texts, to tell products apart, and of all. `score_few`, `score`:
    those logits -> points. `times`: graph file -> node -> milliseconds. `feeds`: padded batches, for the smoothing. `decides`:
    whether texts have classes. `folder`: where what was measured is kept, so that an interrupted search goes on.
    """

    few: Callable[[Path], np.ndarray]
    all: Callable[[Path], np.ndarray]
    score_few: Callable[[np.ndarray], float]
    score: Callable[[np.ndarray], float]
    times: Callable[[Path], Mapping[str, float]]
    feeds: Sequence[Feed]
    decides: bool
    folder: Path
    on_progress: Callable[[int, int], None] = lambda done, total: None

    def lost(self, fp32: np.ndarray, logits: np.ndarray) -> dict[str, float]:
        """Of all texts: points, flips in percent of the texts, and the mean |difference| of logits."""
        lost = {"drop": round(self.score(fp32) - self.score(logits), 4)}
        if self.decides:
            lost["flips"] = round(100 * len(flipped(fp32, logits)) / len(fp32), 4)
        return lost | {"mean_logit_difference": round(logit_difference(fp32, logits)[0], 6)}


@dataclass(frozen=True)
class Found:
    """`settled` holds for the products of `choice`; `info` says what was measured and whether the goal was met."""

    settled: Settled
    choice: Choice
    info: dict[str, Any]


def search(
    model: ModelProto, source: Path, choice: Choice, spec: Quantize, feeds: Sequence[Feed], judge: Judge
) -> Found:
    """Start from all int8, each product in the better of its layouts, and give products back to fp32, those first that
    diverge most for the time that int8 saves them, until the goal of `spec` is met on the tuning split.

    `source`: the file of `model`. Where no mix meets the goal, the one nearest to it.
    """
    return _Search(
        model, source, choice, spec, settle(model, choice, "static", spec, feeds, judge.feeds), judge
    ).found()


def without(choice: Choice, names: Sequence[str]) -> Choice:
    """`choice` with these int8 products in fp32."""
    return replace(choice, int8=tuple(name for name in choice.int8 if name not in names), kept=(*choice.kept, *names))


class _Search:
    def __init__(
        self, model: ModelProto, source: Path, choice: Choice, spec: Quantize, settled: Settled, judge: Judge
    ) -> None:
        self.model, self.source, self.choice, self.spec, self.judge = model, source, choice, spec, judge
        self.notes = _Notes(judge.folder / "search.json")
        alone = self._alone(settled)
        self.divergence = {
            name: {how: one["divergence"] for how, one in found.items()} for name, found in alone.items()
        }
        self.drops = {name: {how: one["drop"] for how, one in found.items()} for name, found in alone.items()}
        self.settled = replace(settled, layouts={name: _better(found) for name, found in self.divergence.items()})
        self.saved = self.notes.once("saved", self._saved)

    def found(self) -> Found:
        order, tried = self._order(), []
        for count in range(len(order)):
            tried.append(self._tried(order[:count]))
            if self._excess(tried[-1]) == 0:
                break
        best = min(range(len(tried)), key=lambda count: (self._excess(tried[count]), count))
        met = self._excess(tried[best]) == 0
        kept, reached, more = self._pruned(order[:best], tried[best]) if met else (order[:best], tried[best], 0)
        layouts = {name: how for name, how in self.settled.layouts.items() if name not in kept}
        settled = replace(self.settled, layouts=layouts)
        info = {
            "goal": self._goal(),
            "goal_met": met,
            "reached": reached,
            "mixes_tried": len(tried) + more,
            "given_back": kept,
            "in_the_way": [] if met else order[:3],
            "layouts": layouts,
            "layouts_tried": self.settled.layouts,
            "divergence": self.divergence,
            "drop_alone": self.drops,
            "texts_alone": self.texts,
            "saved_ms": self.saved,
            **settled.told(),
        }
        return Found(settled, without(self.choice, kept), info)

    def _pruned(self, kept: list[str], reached: dict[str, float]) -> tuple[list[str], dict[str, float], int]:
        """(what must stay fp32 after all, what that mix loses, mixes tried): of products in fp32 those that cost the most
        time are tried first as int8 again."""
        tried = 0
        for name in sorted(kept, key=lambda name: (-self.saved[name], name)):
            fewer = [other for other in kept if other != name]
            if fewer:
                lost, tried = self._tried(fewer), tried + 1
                if self._excess(lost) == 0:
                    kept, reached = fewer, lost
        return kept, reached, tried

    def _alone(self, settled: Settled) -> dict[str, dict[str, dict[str, float]]]:
        """Product -> layout -> how far the logits are from fp32's where this product alone is int8, and the points that
        it loses so; what else reads its input reads it as it was."""
        prepared, rest = settled.prepared(self.model, self.choice, self.spec), settled.beyond(self.model, self.choice)
        fp32 = self.judge.few(self.source)
        score, self.texts = self.judge.score_few(fp32), len(fp32)
        found: dict[str, dict[str, dict[str, float]]] = {}
        for number, name in enumerate(self.choice.int8):
            self.judge.on_progress(number, len(self.choice.int8))
            others = (*self.choice.kept, *self.choice.weight_only)
            alone = Choice(int8=(name,), weight_only=(), kept=others, tables=())
            forms = {layout: replace(rest, layouts={name: layout}) for layout in _LAYOUTS}

            def measured(form: Settled, alone: Choice = alone) -> dict[str, float]:
                logits = asked(form.applied(prepared, alone, self.spec), self.judge.few)
                diverged = _divergence(logits, fp32, decides=self.judge.decides)
                return {"divergence": diverged, "drop": round(score - self.judge.score_few(logits), 4)}

            found[name] = {
                layout: self.notes.once(f"{layout} {name}", lambda form=form: measured(form))
                for layout, form in forms.items()
            }
        self.judge.on_progress(len(self.choice.int8), len(self.choice.int8))
        return found

    def _saved(self) -> dict[str, float]:
        """Product -> the milliseconds that int8 takes off it, by the profiles of both graphs; its nodes are called after it."""
        before = self.judge.times(self.source)
        after = asked(self.settled.applied(self.model, self.choice, self.spec), self.judge.times)
        own = {
            name: sum(
                time for node, time in after.items() if node.startswith(tuple(f"{name}_{part}" for part in _PARTS))
            )
            for name in self.choice.int8
        }
        return {name: round(before.get(name, 0.0) - own[name], 6) for name in self.choice.int8}

    @cached_property
    def _fp32(self) -> np.ndarray:
        return self.judge.all(self.source)

    def _order(self) -> list[str]:
        """The products, the most divergence for the time saved first. One that int8 slows down counts as the least saver."""
        least = min((time for time in self.saved.values() if time > 0), default=1.0)
        worth = {
            name: self.divergence[name][layout] / max(self.saved[name], least)
            for name, layout in self.settled.layouts.items()
        }
        return sorted(worth, key=lambda name: (-worth[name], name))

    def _tried(self, kept: Sequence[str]) -> dict[str, float]:
        """What the mix with `kept` in fp32 loses on the tuning split: points, and flips in percent of the texts."""
        return self.notes.once(f"kept {' '.join(sorted(kept))}", lambda: self._lost(kept))

    def _lost(self, kept: Sequence[str]) -> dict[str, float]:
        mix = self.settled.applied(self.model, without(self.choice, kept), self.spec)
        return self.judge.lost(self._fp32, asked(mix, self.judge.all))

    def _goal(self) -> dict[str, float]:
        return {"drop": self.spec.max_drop} | ({"flips": self.spec.max_flips} if self.judge.decides else {})

    def _excess(self, lost: Mapping[str, float]) -> float:
        """By how much a mix misses the goal, in parts of what is allowed, summed; 0 where it meets it."""
        return sum(max(0.0, lost[name] - most) / max(most, 0.01) for name, most in self._goal().items())


def _better(found: Mapping[str, float]) -> str:
    return "dynamic" if found["dynamic"] < _BETTER * found["static"] else "static"


def _divergence(logits: np.ndarray, fp32: np.ndarray, *, decides: bool) -> float:
    """KL(fp32 ‖ logits) in nats, a text's mean; of a score, the mean squared difference."""
    if not decides:
        return float(np.square(logits - fp32).mean())
    expected, found = probabilities(fp32), probabilities(logits)
    return float((expected * np.log((expected + _TINY) / (found + _TINY))).sum(1).mean())


def asked(model: ModelProto, ask: Callable[[Path], Any]) -> Any:
    """What `ask` says of the file of `model`, which is there for so long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "candidate.onnx"
        write_model(model, path)
        return ask(path)


class _Notes:
    """What was measured, in a JSON file that is whole after every measurement."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = self._read()

    def _read(self) -> dict[str, Any]:
        """Nothing, where the file is not whole: then it is all measured again."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def once(self, name: str, measure: Callable[[], Any]) -> Any:
        if name not in self._known:
            self._known[name] = measure()
            partial = self._path.with_suffix(".partial")
            with partial.open("w", encoding="utf-8") as file:
                json.dump(self._known, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._path)
        return self._known[name]
