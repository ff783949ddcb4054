"""int8 with ranges that a training gave: what it has to know of the graph, and the file that it leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from onnx import GraphProto, ModelProto

from ..errors import CompressError
from ..graphs import fold_transposes, merge_duplicates, strip_identities
from ..models.uses import SEGMENTS, Form, Use
from ..spec.quantization import Quantize
from .choosing import Choice, choose
from .ranges import Range
from .settling import Settled
from .weights import is_long

RANGES_FILE = "activation_ranges.json"
Trained = tuple[Mapping[str, Range], Mapping[str, np.ndarray]]  # ranges and factors of smoothing, by product

FACTORS_FILE = "smoothing_factors.npz"  # only where inputs are smoothed
_ABSORBED = ".absorbed"  # of the fast graph's keys and values that have no product of their own
_FIRST = "first_token/Gather"  # the fast graph's node that takes the first token's state


def tidy(model: ModelProto) -> None:
    """In place: every weight stored once, right at the products that read it."""
    strip_identities(model.graph)
    fold_transposes(model.graph)
    merge_duplicates(model.graph)


def int8_form(model: ModelProto, spec: Quantize) -> tuple[Form, Choice]:
    """What a static file by `spec` of the fast graph `model`, which is made ready in place, has in int8."""
    tidy(model)
    choice = choose(model, spec.exclude, embeddings=spec.embeddings, source=Path("the fast graph"))
    bits, stored = 7 if spec.reduce_range else 8, {tensor.name: tensor for tensor in model.graph.initializer}
    read = {node.name: node.input[0] for node in model.graph.node if node.name in choice.tables}
    tables = tuple(read[name].removesuffix(".weight") for name in choice.tables)
    rows = (stored[read[name]].dims[0] for name in choice.tables)
    long = tuple(table for table, count in zip(tables, rows, strict=True) if is_long(count))
    one_segment = not any(name.endswith(f"{SEGMENTS}.weight") for name in stored)
    return Form(_uses(model.graph, choice), tables, spec.per_channel, bits, one_segment, long), choice


def _uses(graph: GraphProto, choice: Choice) -> tuple[Use, ...]:
    """The graph's products are in the order of the model's calls; the absorbed ones stand for the last layer's."""
    integer, multiplied = set(choice.int8), {*choice.int8, *choice.weight_only, *choice.kept}
    first, calls, found = _of_first_token(graph), dict[str, int](), list[Use]()
    for node in graph.node:
        if node.name not in multiplied:
            continue
        module = node.name.rpartition("/")[0].removesuffix(_ABSORBED)
        number = calls[module] = calls.get(module, -1) + 1
        source = node.input[0] if node.name in integer else None
        if node.name not in choice.kept:
            found.append(Use(node.name, module, number, source, node.input[0] in first))
    return tuple(found)


def _of_first_token(graph: GraphProto) -> set[str]:
    """The tensors that follow from the first token's state of the last layer."""
    known: set[str] = set()
    for node in graph.node:  # ONNX lists nodes in topological order
        if node.name == _FIRST or any(name in known for name in node.input):
            known.update(node.output)
    return known


def given(choice: Choice, layout: str, trained: Trained | None, source: Path) -> Settled:
    """All products in one layout, as they were trained; CompressError where one has no range."""
    if trained is None:
        raise CompressError(
            f"{source}: `method: qat` takes the ranges that a quantize_aware stage left; none were given"
        )
    ranges, factors = trained
    if missing := [name for name in choice.int8 if name not in ranges]:
        raise CompressError(
            f"{source}: {len(missing)} products have no range in {RANGES_FILE}, e.g. {missing[0]}; it is of another model"
        )
    return Settled(dict.fromkeys(choice.int8, layout), ranges, factors)


def write_ranges(
    folder: Path, ranges: Mapping[str, tuple[float, float]], factors: Mapping[str, np.ndarray] | None = None
) -> None:
    """The name of a product -> [low, high] of its input, after its smoothing by `factors`, where there are some."""
    text = json.dumps({name: list(span) for name, span in ranges.items()}, indent=1)
    (folder / RANGES_FILE).write_text(text + "\n", encoding="utf-8")
    if factors:
        np.savez(folder / FACTORS_FILE, allow_pickle=False, **factors)


def read_ranges(folder: Path) -> dict[str, Range]:
    """As `write_ranges` wrote them. CompressError: no such file, or not that."""
    path = folder / RANGES_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): Range(float(low), float(high)) for name, (low, high) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CompressError(f"{path}: expected the ranges of activations, by product: {error}") from None


def read_factors(folder: Path) -> dict[str, np.ndarray]:
    """The name of a product -> [in] of its input's smoothing, as `write_ranges` wrote them; CompressError: not that."""
    path = folder / FACTORS_FILE
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name].astype(np.float32) for name in found}
    except (OSError, ValueError, BadZipFile) as error:
        raise CompressError(f"{path}: expected the smoothing of activations, by product: {error}") from None
