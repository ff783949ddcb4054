"""What a result says of a model that was pruned, and of what recovered it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...recorded_pruning import PruningRecord
from ...spec.stages import Distill, Prune
from ...store import Artifact
from ..plan import Plan


def pruning_record(plan: Plan, artifacts: Mapping[str, Artifact]) -> PruningRecord | None:
    """None where no stage prunes."""
    node = next((node for node in plan.nodes if isinstance(node.spec, Prune)), None)
    if node is None:
        return None
    after = [later for later in plan.nodes if isinstance(later.spec, Distill) and node in plan.needed_for(later.id)]
    recovered = artifacts[after[-1].id].info["tuning_score"] if after else None
    last = next(each for each in reversed(plan.nodes) if each.kind.onnx)
    return PruningRecord(model=last.model, recovered=recovered, **_recorded(artifacts[node.id].info))


def _recorded(info: Mapping[str, Any]) -> dict[str, Any]:
    """What a stage says of itself that the record has, too."""
    return {name: info[name] for name in PruningRecord.model_fields if name in info}
