"""How each int8 product of a graph is quantized: found once on the padded graph, valid for its packed form too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import ModelProto, numpy_helper

from ..spec.quantization import SMOOTHED, Quantize
from .calibration import calibrate
from .choosing import Choice
from .integers import to_integers
from .ranges import Range
from .sampling import Feed, Sample
from .smoothing import Smoothing, find_factors, halve, smooth
from .splitting import repeated, split, split_before
from .weights import to_int8


@dataclass(frozen=True)
class Settled:
    """All by the name of a product. `layouts`: how it is written; `ranges`: of its input, where levels are fixed; `factors`
    [in], `alphas` and `leans`: of its input's smoothing; `copies` [in]: how often the channels of its input stand; `corrections` [out]:
    what its bias makes up for."""

    layouts: Mapping[str, str]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    alphas: Mapping[str, float] = field(default_factory=dict)
    leans: Mapping[str, float] = field(default_factory=dict)
    copies: Mapping[str, np.ndarray] = field(default_factory=dict)
    corrections: Mapping[str, np.ndarray] = field(default_factory=dict)

    def applied(self, model: ModelProto, choice: Choice, spec: Quantize) -> ModelProto:
        """The int8 form of `model`, fp32, whose products are named alike."""
        prepared, rest = self.prepared(model, choice, spec), self.beyond(model, choice)
        made = to_integers(
            prepared,
            choice,
            rest.layouts,
            ranges=rest.ranges,
            corrections=rest.corrections,
            per_channel=spec.per_channel,
            reduce_range=spec.reduce_range,
        )
        halve(made)
        return made

    def beyond(self, model: ModelProto, choice: Choice) -> Settled:
        """What is left to do to a `prepared` form of `model`."""
        wide = split_before(model, self._of(self.copies, choice))
        corrections = {
            name: value[repeated(wide[name])] if name in wide else value for name, value in self.corrections.items()
        }
        return replace(self, factors={}, copies={}, corrections=corrections)

    def told(self) -> dict[str, dict[str, float]]:
        """By product, where there are any: the α and L of its smoothing, and the channels that it has more than in fp32."""
        alphas, leans = (
            {name: value for name, value in found.items() if name in self.layouts}
            for found in (self.alphas, self.leans)
        )
        more = {name: int(own.sum()) - len(own) for name, own in self.copies.items() if name in self.layouts}
        return {
            name: value for name, value in {"alphas": alphas, "leans": leans, "channels_added": more}.items() if value
        }

    def prepared(self, model: ModelProto, choice: Choice, spec: Quantize) -> ModelProto:
        """`model` in fp32, smoothed and split where products of `choice` are int8; its outputs are the same."""
        smoothed = smooth(model, self._of(self.factors, choice))
        return split(smoothed, self._of(self.copies, choice), **spec.weights)

    def _of(self, found: Mapping[str, np.ndarray], choice: Choice) -> dict[str, np.ndarray]:
        return {name: value for name, value in found.items() if name in choice.int8}


def settle(
    model: ModelProto, choice: Choice, layout: str, spec: Quantize, feeds: Sequence[Feed], tuning: Sequence[Feed] = ()
) -> Settled:
    """All products in one layout. `feeds`: batches of training texts, for the ranges; `tuning`: of texts for the choice of α."""
    layouts = dict.fromkeys(choice.int8, layout)
    if layout == "dynamic":
        return Settled(layouts)
    smoothed = spec.method in SMOOTHED
    found = find_factors(model, choice, tuning or feeds, spec) if smoothed else Smoothing()
    settled = Settled(layouts, **vars(found))
    model = settled.prepared(model, choice, spec)
    read = {node.name: node.input[0] for node in model.graph.node if node.name in layouts}
    spans = calibrate(
        model, tuple(dict.fromkeys(read.values())), feeds, method=spec.calibration, percentile=spec.percentile
    )
    ranges = {product: spans[tensor] for product, tensor in read.items()}
    corrections = _corrections(model, choice, ranges, feeds, spec) if spec.bias_correction else {}
    for name, copies in split_before(model, settled.copies).items():
        if name in corrections:
            corrections[name] = corrections[name][: len(copies)]  # of each channel once
    return replace(settled, ranges=ranges, corrections=corrections)


def _corrections(
    model: ModelProto, choice: Choice, ranges: Mapping[str, Range], feeds: Sequence[Feed], spec: Quantize
) -> dict[str, np.ndarray]:
    """Product -> the mean over all tokens of what it should give less what it gives (Nagel et al. 2019, arXiv:1906.04721,
    section 4.2, with the data at hand in place of the norm's statistics)."""
    named = set(choice.int8)
    products = [node for node in model.graph.node if node.name in named]
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    spans = {node.input[0]: ranges[node.name] for node in products}
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
    for node in products:
        name, weight = node.input[0], numpy_helper.to_array(stored[node.input[1]])
        levels, scale = to_int8(weight, **spec.weights)
        found[node.name] = (exact[name] @ weight - rounded[name] @ (levels * scale)) / rows[name]
    return {name: value.astype(np.float32) for name, value in found.items()}
