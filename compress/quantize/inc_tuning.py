"""neural-compressor's tuning loop over which matmuls to leave in fp32; each candidate is scored as the ONNX file it would
become."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from onnx import ModelProto

from ..errors import CompressError
from ..graphs.matmuls import stored_weight
from ..graphs.rewriting import split_gemms
from ..models.families import FAMILIES
from ..spec.quantization import Quantize
from .evaluator import Evaluator, measure_file
from .inc_folding import fold_weights
from .int8_graph import to_int8_graph
from .node_selection import QuantizationPlan, select_nodes, without_matmuls
from .sampling import Feed

if TYPE_CHECKING:
    from torch import Tensor, nn

_FULL = 100.0  # score of a model that loses nothing: the loop divides by it, and a task's own points may be 0


class Program(Protocol):
    """A checkpoint in torch.

    `module` takes int64 [batch, length] tensors in the order of `inputs` and returns the logits, or each of its outputs if
    it has several; `logits` concatenates these. `path`: the submodule after which a node of `graph(module)` is named. While
    `quiet` is open, neither tracing nor a loop over traces prints its steps.
    """

    @property
    def module(self) -> nn.Module: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def examples(self) -> tuple[Tensor, ...]: ...
    @property
    def shapes(self) -> tuple[dict[int, Any], ...]: ...
    def path(self, name: str) -> str: ...
    def quiet(self) -> AbstractContextManager[None]: ...
    def logits(self, module: Any, inputs: Sequence[Tensor]) -> Tensor: ...
    def graph(self, module: nn.Module) -> ModelProto: ...


@dataclass(frozen=True)
class Trial:
    """A candidate: its program, the graph with only the program's int8 matmuls, the graph as it would be shipped, the plan
    of what should be int8 in it, and its loss on the tuning split."""

    module: Any
    folded: ModelProto
    model: ModelProto
    plan: QuantizationPlan
    lost: dict[str, Any]


class Tuning:
    """A run of the tuning loop. `plain`: the graph of the fp32 program, with nodes named as in the candidates."""

    def __init__(
        self, source: Path, spec: Quantize, program: Program, feeds: Sequence[Feed], evaluator: Evaluator
    ) -> None:
        self.source, self.spec, self.program, self.feeds, self.evaluator = source, spec, program, feeds, evaluator
        self.plain = program.graph(program.module)
        chosen = select_nodes(self.plain, spec.exclude, embeddings=spec.embeddings, source=source)
        self.plan = _whole_modules(chosen)
        self.candidates = _candidates(self.plain, self.plan.int8)
        self._fp32_scored = False
        self._losses: list[dict[str, Any]] = []
        self._last: Trial | None = None  # keeping every program would fill the memory

    @cached_property
    def _fp32(self) -> np.ndarray:
        return self.evaluator.all(self.source)

    def best(self) -> Trial:
        """Return the first candidate that meets the goal of `spec`, or the best of all."""
        exported = _library("export").export(
            self.program.module, self.program.examples, dynamic_shapes=self.program.shapes
        )
        if exported is None:
            raise CompressError(f"{self.source}: neural-compressor cannot trace this model")
        configs = [self._config(fallbacks) for fallbacks in self.candidates]
        library = _library("quantization")
        tuning = library.TuningConfig(configs, tolerable_loss=self.spec.max_drop / _FULL, max_trials=len(configs))
        module = library.autotune(exported, tuning, eval_fn=self._score, run_fn=self._calibrate)
        if self._last is not None and module is self._last.module:
            return self._last
        # Of several candidates, the loop quantizes the best one again.
        drops = [lost["drop"] for lost in self._losses]
        return self._trial(module, self.candidates[drops.index(min(drops))])

    def info(self, trial: Trial) -> dict[str, Any]:
        """Describe the outcome under the same keys as the search of `auto`."""
        return {
            "goal": {"drop": self.spec.max_drop},
            "goal_met": trial.lost["drop"] <= self.spec.max_drop,
            "reached": trial.lost,
            "texts": dict(self.evaluator.texts),
            "mixes_tried": len(self._losses),
            "tried": list(self._losses),
            "fp32_fallbacks": [name for name in trial.plan.kept if name not in self.plan.kept],
        }

    def _config(self, fallbacks: Sequence[str]) -> Any:
        config_of = _library("quantization").StaticQuantConfig
        config = config_of(w_granularity="per_channel" if self.spec.per_channel else "per_tensor")
        always = map(_module, (*self.plan.kept, *self.plan.weight_only))
        for module in dict.fromkeys([*always, *fallbacks]):
            config.set_local(self.program.path(module), config_of(w_dtype="fp32", act_dtype="fp32"))
        return config

    def _calibrate(self, prepared: Any) -> None:
        """Run one text at a time, so that no padding enters the ranges, and in random order, because a text's weight depends
        on its position."""
        import torch

        texts = list(_text_rows(self.feeds, self.program.inputs))
        with torch.no_grad():
            for index in np.random.default_rng(0).permutation(len(texts)):
                prepared(*map(torch.from_numpy, texts[index]))

    def _score(self, module: Any) -> float:
        """Return points relative to the fp32 program, which the loop scores first and which has 100."""
        if not self._fp32_scored:
            self._fp32_scored = True
            return _FULL
        self._last = self._trial(module, self.candidates[len(self._losses)])
        self._losses.append(self._last.lost)
        return _FULL - self._last.lost["drop"]

    def _trial(self, module: Any, fallbacks: Collection[str]) -> Trial:
        folded = fold_weights(self.program.graph(module))
        plan = without_matmuls(self.plan, [name for name in self.plan.int8 if _module(name) in fallbacks])
        split_gemms(folded.graph, set(plan.weight_only))
        # This stores the rest as int8, what is not a matmul of two quantized tensors: tables, and weights next to the logits.
        model = to_int8_graph(
            folded, replace(plan, int8=()), {}, per_channel=self.spec.per_channel, word_bits=self.spec.word_bits
        )
        return Trial(
            module,
            folded,
            model,
            plan,
            self.evaluator.losses_against(self._fp32, measure_file(model, self.evaluator.all)),
        )


def _library(part: str) -> Any:
    """Import a part of neural-compressor as `Any`: its annotations differ from the types that it accepts."""
    return importlib.import_module(f"neural_compressor.torch.{part}")


def _module(node: str) -> str:
    return node.rpartition("/")[0]


def _whole_modules(plan: QuantizationPlan) -> QuantizationPlan:
    """Return `plan` as neural-compressor can carry it out: a module is int8 either everywhere it is used or nowhere."""
    modules = set(map(_module, (*plan.kept, *plan.weight_only)))
    shared = [name for name in plan.int8 if _module(name) in modules]
    return without_matmuls(plan, shared)


def _candidates(model: ModelProto, int8: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the modules of each candidate that are fp32 besides those that always are: first none, then feed-forward ones,
    the most sensitive to int8 first: the second of a layer before the first, early layers before late ones."""
    first, second = _feed_forward(_shapes(model, int8))
    half = second[: -(-len(second) // 2)]
    candidates = ([], second[:1], half, second, second + first)
    return list(dict.fromkeys(map(tuple, candidates)))


def _feed_forward(shapes: Mapping[str, tuple[int, int]]) -> tuple[list[str], list[str]]:
    """Return the first and the second modules of the feed-forward layers. The shapes [in, out] decide only if a layer's
    parts have no names in `EncoderLayers.parts`: in a pruned model attention narrows too, and feed-forward layers may be narrower
    than the hidden states."""
    parts = {module: _layer_part(module) for module in shapes}
    if any(parts.values()):
        up, down = ([module for module in parts if parts[module] == part] for part in ("up", "down"))
        return up, down
    first = [module for module, (narrow, wide) in shapes.items() if wide > narrow]
    second = [module for module, (wide, narrow) in shapes.items() if wide > narrow]
    return first, second


def _layer_part(module: str) -> str | None:
    """Return which part of a layer `module` is, by the names of `EncoderLayers.parts`."""
    place = _without_numbers(module)
    return next((part for path, part in _layer_parts().items() if place.endswith(path)), None)


@cache
def _layer_parts() -> dict[str, str]:
    """Map the path of a layer's module to its part, for all families."""
    return {
        _without_numbers(f"{family.layers.path}.{name}"): part
        for family in FAMILIES.values()
        for part, name in family.layers.parts.items()
    }


def _without_numbers(path: str) -> str:
    return re.sub(r"\b\d+\b|{}", "#", path)


def _shapes(model: ModelProto, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Map each module to (in, out) of its matmul, in the order of the graph."""
    dims = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    shapes: dict[str, tuple[int, int]] = {}
    for node in model.graph.node:
        weight = stored_weight(model.graph, node) if node.name in names else None
        if weight is not None and len(dims[weight]) == 2:
            shapes[_module(node.name)] = (dims[weight][0], dims[weight][1])
    return shapes


def _text_rows(feeds: Sequence[Feed], names: Sequence[str]) -> Iterator[list[np.ndarray]]:
    """Yield each row of padded batches at its own length: its inputs [1, length] in the order of `names`."""
    for feed in feeds:
        for row, length in enumerate(feed["attention_mask"].sum(1)):
            yield [np.ascontiguousarray(feed[name][row : row + 1, :length]) for name in names]
