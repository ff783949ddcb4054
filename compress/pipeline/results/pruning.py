"""What a result says of a model that was pruned, and of what recovered it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ...results.pruning import PruningRecord
from ...spec.stages import Distill, Prune
from ...store import Artifact
from ..plan import Plan


def pruning_records(plan: Plan, artifacts: Mapping[str, Artifact]) -> tuple[PruningRecord, ...]:
    """Of each stage that prunes, in their order."""
    last = next(each for each in reversed(plan.nodes) if each.kind.onnx)
    places = [place for place, node in enumerate(plan.nodes) if isinstance(node.spec, Prune)]
    found = []
    for place, end in pairwise([*places, len(plan.nodes)]):
        node = plan.nodes[place]
        after = [later for later in plan.nodes[place:end] if isinstance(later.spec, Distill)]
        recovered = artifacts[after[-1].id].info["tuning_score"] if after else None
        info = _recorded(artifacts[node.id].info)
        found.append(PruningRecord(stage=node.stage, model=last.model, recovered=recovered, **info))
    return tuple(found)


def _recorded(info: Mapping[str, Any]) -> dict[str, Any]:
    """What a stage says of itself that the record has, too."""
    return {name: info[name] for name in PruningRecord.model_fields if name in info}
