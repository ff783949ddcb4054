"""The sizes of a plan's last model, as far as they are known before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.dimensions import Dimensions
from ..pipeline import Plan
from ..pipeline.stages.registry import kind_of


@dataclass(frozen=True)
class KnownSizes:
    """`least`: no run of the plan goes below these sizes. `exact`: whether every run ends with just these."""

    least: Dimensions
    exact: bool


def known_sizes(plan: Plan) -> KnownSizes:
    """Return the known sizes of the last model. A stage that reduces the vocabulary already counts the tokens of the
    training texts."""
    name, _, _ = plan.models[-1].rpartition("-")
    least = plan.sizes[name]
    most: Dimensions | None = least
    for node in plan.nodes:
        kind = kind_of(node)
        if kind.resized is not None and kind.smallest is not None:
            least = kind.smallest(plan, node, least)
            most = None if most is None else kind.resized(node.spec, most)
    return KnownSizes(least, least == most)
