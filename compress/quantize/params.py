"""Parameters of each int8 matmul of a graph: computed on the padded graph, valid for its unpadded form too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import ModelProto, numpy_helper

from ..spec.quantization import Quantize
from .channel_splitting import source_channels, split_before, split_channels
from .int8_graph import to_int8_graph
from .node_selection import QuantizationPlan
from .ranges import Range, calibrate
from .sampling import Feed, Sample
from .smoothing import Smoothing, find_factors, halve_factor_precision, smooth
from .value_folding import divided_values
from .weights import to_int8


@dataclass(frozen=True)
class QuantizationParams:
    """Quantization parameters by matmul name.

    `int8_formats`: its format. `ranges`: of its input, if fixed. `factors` [in], `alphas` and `minor_side_weights`: the
    smoothing of its input. `channel_repeats` [in]: how many times each input channel is stored. `corrections` [out]: added
    to its bias.
    """

    int8_formats: Mapping[str, str]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    alphas: Mapping[str, float] = field(default_factory=dict)
    minor_side_weights: Mapping[str, float] = field(default_factory=dict)
    channel_repeats: Mapping[str, np.ndarray] = field(default_factory=dict)
    corrections: Mapping[str, np.ndarray] = field(default_factory=dict)

    def applied(self, model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> ModelProto:
        """Return the int8 form of the fp32 graph `model`, which has the same matmul names."""
        prepared, rest = self.prepared(model, plan, spec), self.beyond(model, plan, spec)
        quantized = to_int8_graph(
            prepared,
            plan,
            rest.int8_formats,
            ranges=rest.ranges,
            corrections=rest.corrections,
            per_channel=spec.per_channel,
            reduce_range=spec.reduce_range,
            word_bits=spec.word_bits,
        )
        halve_factor_precision(quantized)
        return quantized

    def beyond(self, model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> QuantizationParams:
        """Return the parameters still to be applied to a `prepared` form of `model`."""
        corrections, divided = dict(self.corrections), self._divisors(model, plan, spec)
        wide = split_before(model, self._of_plan(self.channel_repeats, plan))
        for name in corrections:
            if name in divided:
                corrections[name] = corrections[name] / divided[name]
            if name in wide:
                corrections[name] = corrections[name][source_channels(wide[name])]
        return replace(self, factors={}, channel_repeats={}, corrections=corrections)

    def summary(self) -> dict[str, dict[str, float]]:
        """Return, by matmul and only where there are any: α and the minor-side weight of the smoothing, and the number of
        channels added."""
        added = {name: int(repeats.sum()) - len(repeats) for name, repeats in self.channel_repeats.items()}
        figures = {"alphas": self.alphas, "minor_side_weights": self.minor_side_weights, "channels_added": added}
        written = {
            what: {name: value for name, value in values.items() if name in self.int8_formats}
            for what, values in figures.items()
        }
        return {what: values for what, values in written.items() if values}

    def prepared(self, model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> ModelProto:
        """Return `model` in fp32, smoothed and split for the int8 matmuls of `plan`; its outputs are the same."""
        smoothed = smooth(model, self._of_plan(self.factors, plan), fold=spec.per_channel)
        return split_channels(smoothed, self._of_plan(self.channel_repeats, plan), **spec.weights)

    def with_corrections(
        self, corrections: Mapping[str, np.ndarray], model: ModelProto, plan: QuantizationPlan, spec: Quantize
    ) -> QuantizationParams:
        """Return these parameters with `corrections`, measured on a `prepared` form of `model`, converted to original
        channels and undivided values."""
        converted_corrections, divided = dict(corrections), self._divisors(model, plan, spec)
        wide = split_before(model, self.channel_repeats)
        for name in converted_corrections:
            if name in wide:
                converted_corrections[name] = converted_corrections[name][: len(wide[name])]
            if name in divided:
                converted_corrections[name] = converted_corrections[name] * divided[name]
        return replace(self, corrections=converted_corrections)

    def _divisors(self, model: ModelProto, plan: QuantizationPlan, spec: Quantize) -> dict[str, np.ndarray]:
        """Map the int8 matmuls whose outputs are divided values to their divisors [out]."""
        divisors = divided_values(model.graph, self._of_plan(self.factors, plan)) if spec.per_channel else {}
        return self._of_plan(divisors, plan)

    def _of_plan(self, by_matmul: Mapping[str, np.ndarray], plan: QuantizationPlan) -> dict[str, np.ndarray]:
        return {name: value for name, value in by_matmul.items() if name in plan.int8}


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
    """Compute the parameters, all matmuls in one format. `feeds`: batches of training texts, for the ranges. `tuning`:
    batches for the choice of α if inputs are `smoothed`; default: `feeds`."""
    int8_formats = dict.fromkeys(plan.int8, int8_format)
    if int8_format == "dynamic" or not plan.int8:
        return QuantizationParams(int8_formats)
    smoothing = find_factors(model, plan, tuning or feeds, spec) if smoothed else Smoothing()
    params = QuantizationParams(int8_formats, **vars(smoothing))
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
    """Map each matmul to the mean over all tokens of its fp32 minus its int8 output (Nagel et al. 2019, arXiv:1906.04721,
    section 4.2, measured on the data instead of derived from the norm's statistics)."""
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
    corrections = {}
    for node in matmuls:
        name, weight = node.input[0], numpy_helper.to_array(stored[node.input[1]])
        quantized, scale = to_int8(weight, **spec.weights)
        corrections[node.name] = (exact[name] @ weight - rounded[name] @ (quantized * scale)) / rows[name]
    return {name: value.astype(np.float32) for name, value in corrections.items()}
