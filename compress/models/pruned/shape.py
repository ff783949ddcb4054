"""Which heads and how many feed-forward neurons each layer of a pruned encoder has: the field `pruned` of config.json. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import CompressError, with_article
from ..families import FAMILIES, Family

FIELD = "pruned"


@dataclass(frozen=True)
class PrunedShape:
    """Per layer: `heads`, the numbers, from 0, of the remaining heads in the unpruned model, ascending; `neurons`, how many remain. A layer
    may have none of either; at least one layer has a head."""

    heads: tuple[tuple[int, ...], ...]
    neurons: tuple[int, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> PrunedShape | None:
        """Return the shape in a checked config.json; None for a model that is not pruned, or whose layers are alike with all their
        heads."""
        field = config.get(FIELD)
        return None if field is None else cls(tuple(map(tuple, field["heads"])), tuple(field["neurons"]))

    @property
    def field(self) -> dict[str, Any]:
        """The value for config.json."""
        return {"heads": [list(heads) for heads in self.heads], "neurons": list(self.neurons)}

    def __str__(self) -> str:
        """`7–12 heads, FFN 640–1,536`."""
        return f"{_span([len(heads) for heads in self.heads])} heads, FFN {_span(self.neurons)}"


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def prunable_families() -> list[Family]:
    """Return the families whose layers may differ in heads and neurons: those with named parts and no shared layers."""
    return [family for family in FAMILIES.values() if family.layers.parts and not family.shares_layers]


def why_not_prunable(family: str) -> str:
    """Return why a model of this family cannot be pruned, and which families can."""
    title = with_article(FAMILIES[family].title)
    return f"layers of {title} cannot differ in heads and neurons; those of {', '.join(each.name for each in prunable_families())} can"


def check_pruned(path: Path, config: Mapping[str, Any]) -> None:
    """Raise `CompressError`, naming the file, if `pruned` does not fit the other fields of a config.json."""
    shape, family = PrunedShape.of(config), FAMILIES[config["model_type"]]
    if shape is None:
        return
    if family not in prunable_families():
        raise CompressError(f"{path}: {FIELD}: {why_not_prunable(family.name)}")
    layers, heads, neurons = (
        config.get(family.own_name(name)) for name in ("num_hidden_layers", "num_attention_heads", "intermediate_size")
    )
    for name, values in (("heads", shape.heads), ("neurons", shape.neurons)):
        if layers is not None and len(values) != layers:
            raise CompressError(
                f"{path}: {FIELD}.{name}: expected one entry for each of {layers} layers; found {len(values)}"
            )
    if not any(shape.heads):
        raise CompressError(
            f"{path}: {FIELD}.heads: expected a head in at least one layer; found none, so tokens could not "
            "attend to each other"
        )
    for number, (kept, width) in enumerate(zip(shape.heads, shape.neurons, strict=True)):
        if heads is not None and kept and kept[-1] >= heads:
            raise CompressError(f"{path}: {FIELD}.heads[{number}]: expected numbers below {heads}; found {kept[-1]}")
        if neurons is not None and width > neurons:
            raise CompressError(f"{path}: {FIELD}.neurons[{number}]: expected at most {neurons}; found {width}")
