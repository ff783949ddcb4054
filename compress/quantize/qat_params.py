"""Parameters of quantization-aware training: what it needs from the graph, and the files that it leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from onnx import GraphProto, ModelProto

from ..errors import CompressError
from ..graphs.rewriting import fold_transposes, merge_duplicates, strip_identities
from ..models.fake_quant.spec import SEGMENTS, MatmulUse, QuantSpec
from ..spec.quantization import Quantize
from .node_selection import QuantizationPlan, select_nodes
from .params import QuantizationParams
from .ranges import Range
from .weights import is_long

RANGES_FILE = "activation_ranges.json"
FACTORS_FILE = "smoothing_factors.npz"  # only where inputs are smoothed
REPEATS_FILE = "channel_copies.npz"  # only where outlier channels are split
_ABSORBED = ".absorbed"  # suffix of the fast graph's keys and values without a matmul of their own
_FIRST = "first_token/Gather"  # the fast graph's node that takes the first token's state; further ones are numbered


@dataclass(frozen=True)
class Trained:
    """Results of quantization-aware training, stored beside its checkpoint, by matmul: the range of its input, its smoothing
    factors [in], and the repeats of its channels [in], if any is repeated."""

    ranges: Mapping[str, Range]
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    channel_repeats: Mapping[str, np.ndarray] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        spans = {name: [span.low, span.high] for name, span in self.ranges.items()}
        (folder / RANGES_FILE).write_text(json.dumps(spans, indent=1) + "\n", encoding="utf-8")
        for name, arrays in ((FACTORS_FILE, self.factors), (REPEATS_FILE, self.channel_repeats)):
            if arrays:
                np.savez(folder / name, allow_pickle=False, **arrays)

    @classmethod
    def read(cls, folder: Path) -> Trained:
        """Read what `write` wrote. CompressError: no such files, or other content."""
        path = folder / RANGES_FILE
        try:
            spans = json.loads(path.read_text(encoding="utf-8"))
            ranges = {str(name): Range(float(low), float(high)) for name, (low, high) in spans.items()}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise CompressError(f"{path}: expected the ranges of activations, by matmul: {error}") from None
        factors, channel_repeats = (
            _arrays(folder / name, kind) for name, kind in ((FACTORS_FILE, "f4"), (REPEATS_FILE, "i8"))
        )
        return cls(ranges, factors, channel_repeats)


def _arrays(path: Path, kind: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file, none if it does not exist. CompressError: not a file of `Trained.write`."""
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name].astype(kind) for name in arrays}
    except (OSError, ValueError, BadZipFile) as error:
        raise CompressError(f"{path}: expected a vector for each matmul: {error}") from None


def deduplicate_weights(model: ModelProto) -> None:
    """Store every weight once, as a direct input of the matmuls that read it. In place."""
    strip_identities(model.graph)
    fold_transposes(model.graph)
    merge_duplicates(model.graph)


def quant_spec_of(model: ModelProto, spec: Quantize) -> tuple[QuantSpec, QuantizationPlan]:
    """Return what a static file of the fast graph `model` has in int8 under `spec`, and the plan. Tidies `model` and splits
    its Gemms in place."""
    deduplicate_weights(model)
    plan = select_nodes(model, spec.exclude, embeddings=spec.embeddings, source=Path("the fast graph"))
    bits, stored = 7 if spec.reduce_range else 8, {tensor.name: tensor for tensor in model.graph.initializer}
    read = {node.name: node.input[0] for node in model.graph.node if node.name in plan.tables}
    tables = tuple(read[name].removesuffix(".weight") for name in plan.tables)
    rows = (stored[read[name]].dims[0] for name in plan.tables)
    long = tuple(table for table, count in zip(tables, rows, strict=True) if is_long(count))
    one_segment = not any(name.endswith(f"{SEGMENTS}.weight") for name in stored)
    return QuantSpec(_matmul_uses(model.graph, plan), tables, spec.per_channel, bits, one_segment, long), plan


def _matmul_uses(graph: GraphProto, plan: QuantizationPlan) -> tuple[MatmulUse, ...]:
    """Return the graph's matmuls, which are in the order of the model's calls; absorbed ones count as the last layer's."""
    integer, multiplied = set(plan.int8), {*plan.int8, *plan.weight_only, *plan.kept}
    first, calls, uses = _of_first_token(graph), dict[str, int](), list[MatmulUse]()
    for node in graph.node:
        if node.name not in multiplied:
            continue
        module = node.name.rpartition("/")[0].removesuffix(_ABSORBED)
        number = calls[module] = calls.get(module, -1) + 1
        source = node.input[0] if node.name in integer else None
        if node.name not in plan.kept:
            uses.append(MatmulUse(node.name, module, number, source, node.input[0] in first))
    return tuple(uses)


def _of_first_token(graph: GraphProto) -> set[str]:
    """Return the tensors computed from a first token's state. If a vector combines several layers, the states of earlier
    ones only enter their sum, and no layer's matmul reads them."""
    known: set[str] = set()
    for node in graph.node:  # ONNX lists nodes in topological order
        taken = node.name == _FIRST or node.name.startswith(f"{_FIRST}_")
        if taken or any(name in known for name in node.input):
            known.update(node.output)
    return known


def trained_params(
    plan: QuantizationPlan, int8_format: str, trained: Trained | None, source: Path
) -> QuantizationParams:
    """Return the trained parameters, all matmuls in one int8 format. CompressError: none given, or a matmul without a range."""
    if trained is None:
        raise CompressError(
            f"{source}: `method: qat` takes the ranges that a quantize_aware stage left; none were given"
        )
    if missing := [name for name in plan.int8 if name not in trained.ranges]:
        raise CompressError(
            f"{source}: {len(missing)} matmuls have no range in {RANGES_FILE}, e.g. {missing[0]}; it is of another model"
        )
    int8_formats = dict.fromkeys(plan.int8, int8_format)
    return QuantizationParams(
        int8_formats, trained.ranges, factors=trained.factors, channel_repeats=trained.channel_repeats
    )
