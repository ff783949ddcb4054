"""What a result records of a pruned model, and of the training that recovered it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ...results.pruning import PruningRecord
from ...spec.stages import Distill, Prune
from ...store import Artifact
from ..plan import Plan


def pruning_records(plan: Plan, artifacts: Mapping[str, Artifact]) -> tuple[PruningRecord, ...]:
    """Return a record of each stage that prunes, in order."""
    last = next(each for each in reversed(plan.nodes) if each.kind.onnx)
    places = [place for place, node in enumerate(plan.nodes) if isinstance(node.spec, Prune)]
    records = []
    for place, end in pairwise([*places, len(plan.nodes)]):
        node = plan.nodes[place]
        after = [later for later in plan.nodes[place:end] if isinstance(later.spec, Distill)]
        recovered = artifacts[after[-1].id].info["tuning_score"] if after else None
        info = _record_fields(artifacts[node.id].info)
        records.append(PruningRecord(stage=node.stage, model=last.model, recovered=recovered, **info))
    return tuple(records)


def _record_fields(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a stage's info that the record has, too."""
    return {name: info[name] for name in PruningRecord.model_fields if name in info}
