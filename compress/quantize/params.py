"""How each int8 matmul of a graph is quantized: found once on the padded graph, valid for its unpadded form too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import ModelProto, numpy_helper

from ..spec.quantization import Quantize
from .channel_splitting import repeated, split_before, split_channels
from .int8_graph import to_int8_graph
from .node_selection import QuantizationPlan
from .ranges import Range, calibrate
from .sampling import Feed, Sample
from .smoothing import Smoothing, find_factors, halve, smooth
from .value_folding import divided_values
from .weights import to_int8


@dataclass(frozen=True)
class QuantizationParams:
    """All by the name of a matmul. `int8_formats`: how it is written; `ranges`: of its input, where
    they are fixed; `factors` [in], `alphas` and `minor_side_weights`: of its input's smoothing; `channel_repeats` [in]: how often
    each channel of its input stands in the file; `corrections` [out]: what is added to its bias."""

    int8_formats: Mapping[str, str]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    alphas: Mapping[str, float] = field(default_factory=dict)
    minor_side_weights: Mapping[str, float] = field(default_factory=dict)
    channel_repeats: Mapping[str, np.ndarray] = field(default_factory=dict)
    corrections: Mapping[str, np.ndarray] = field(default_factory=dict)

    def applied(self, model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> ModelProto:
        """The int8 form of `model`, fp32, whose matmuls are named alike."""
        prepared, rest = self.prepared(model, plan, spec), self.beyond(model, plan, spec)
        made = to_int8_graph(
            prepared,
            plan,
            rest.int8_formats,
            ranges=rest.ranges,
            corrections=rest.corrections,
            per_channel=spec.per_channel,
            reduce_range=spec.reduce_range,
            word_bits=spec.word_bits,
        )
        halve(made)
        return made

    def beyond(self, model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> QuantizationParams:
        """What is left to do to a `prepared` form of `model`."""
        corrections, divided = dict(self.corrections), self._divided(model, plan, spec)
        wide = split_before(model, self._of(self.channel_repeats, plan))
        for name in corrections:
            if name in divided:
                corrections[name] = corrections[name] / divided[name]
            if name in wide:
                corrections[name] = corrections[name][repeated(wide[name])]
        return replace(self, factors={}, channel_repeats={}, corrections=corrections)

    def summary(self) -> dict[str, dict[str, float]]:
        """By matmul, where there are any: the α and the minor-side weight of its smoothing, and how many channels it has more
        than in fp32."""
        added = {name: int(repeats.sum()) - len(repeats) for name, repeats in self.channel_repeats.items()}
        found = {"alphas": self.alphas, "minor_side_weights": self.minor_side_weights, "channels_added": added}
        written = {
            what: {name: value for name, value in values.items() if name in self.int8_formats}
            for what, values in found.items()
        }
        return {what: values for what, values in written.items() if values}

    def prepared(self, model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> ModelProto:
        """`model` in fp32, smoothed and split where matmuls of `plan` are int8; its outputs are the same."""
        smoothed = smooth(model, self._of(self.factors, plan), fold=spec.per_channel)
        return split_channels(smoothed, self._of(self.channel_repeats, plan), **spec.weights)

    def with_corrections(
        self, corrections: Mapping[str, np.ndarray], model: ModelProto, plan: QuantizationPlan, spec: Quantize
    ) -> QuantizationParams:
        """`corrections`: of a `prepared` form of `model`; kept are those of each channel once, and of values not divided."""
        found, divided = dict(corrections), self._divided(model, plan, spec)
        wide = split_before(model, self.channel_repeats)
        for name in found:
            if name in wide:
                found[name] = found[name][: len(wide[name])]
            if name in divided:
                found[name] = found[name] * divided[name]
        return replace(self, corrections=found)

    def _divided(self, model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> dict[str, np.ndarray]:
        """Those of the int8 matmuls by values that give them divided."""
        found = divided_values(model.graph, self._of(self.factors, plan)) if spec.per_channel else {}
        return self._of(found, plan)

    def _of(self, found: Mapping[str, np.ndarray], plan: QuantizationPlan) -> dict[str, np.ndarray]:
        return {name: value for name, value in found.items() if name in plan.int8}


def compute_params(
    model: ModelProto,
    plan: QuantizationPlan,
    int8_format: str,
    spec: Quantize,
    feeds: Sequence[Feed],
    tuning: Sequence[Feed] = (),
    *,
    smoothed: bool,
) -> QuantizationParams:
    """All matmuls in one format. `feeds`: batches of training texts, for the ranges; `tuning`: of texts for the choice of α,
    where inputs are `smoothed`."""
    int8_formats = dict.fromkeys(plan.int8, int8_format)
    if int8_format == "dynamic" or not plan.int8:
        return QuantizationParams(int8_formats)
    found = find_factors(model, plan, tuning or feeds, spec) if smoothed else Smoothing()
    params = QuantizationParams(int8_formats, **vars(found))
    prepared = params.prepared(model, plan, spec)
    read = {node.name: node.input[0] for node in prepared.graph.node if node.name in int8_formats}
    spans = calibrate(
        prepared, tuple(dict.fromkeys(read.values())), feeds, method=spec.calibration, percentile=spec.percentile
    )
    ranges = {matmul: spans[tensor] for matmul, tensor in read.items()}
    params = replace(params, ranges=ranges)
    if not spec.bias_correction:
        return params
    return params.with_corrections(_corrections(prepared, plan, ranges, feeds, spec), model, plan, spec)


def _corrections(
    model: ModelProto, plan: QuantizationPlan, ranges: Mapping[str, Range], feeds: Sequence[Feed], spec: Quantize
) -> dict[str, np.ndarray]:
    """Matmul -> the mean over all tokens of what it should give less what it gives (Nagel et al. 2019, arXiv:1906.04721,
    section 4.2, with the data at hand in place of the norm's statistics)."""
    named = set(plan.int8)
    matmuls = [node for node in model.graph.node if node.name in named]
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    spans = {node.input[0]: ranges[node.name] for node in matmuls}
    exact: dict[str, np.ndarray] = {}
    rounded: dict[str, np.ndarray] = {}
    rows: dict[str, int] = {}
    with Sample(model, tuple(spans), feeds) as sample:
        for batch in sample.batches():
            for name, values in batch.items():
                flat = values.reshape(-1, values.shape[-1])
                exact[name] = exact.get(name, 0) + flat.sum(0, dtype=np.float64)
                rounded[name] = rounded.get(name, 0) + spans[name].rounded(flat).sum(0, dtype=np.float64)
                rows[name] = rows.get(name, 0) + len(flat)
    found = {}
    for node in matmuls:
        name, weight = node.input[0], numpy_helper.to_array(stored[node.input[1]])
        levels, scale = to_int8(weight, **spec.weights)
        found[node.name] = (exact[name] @ weight - rounded[name] @ (levels * scale)) / rows[name]
    return {name: value.astype(np.float32) for name, value in found.items()}
