"""Whether `exclude` names nodes of the models to come, before these are trained: names do not depend on weights."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ..fields import Spec
from ..spec.quantization import Quantize
from .plan import Node, Plan


def check_excluded(nodes: Iterable[tuple[Plan, Node[Spec]]]) -> None:
    """Raise `CompressError` for a pattern that names nothing in a model of that form with random weights, and where nothing is left to
    become int8. A model that a stage prunes is taken as it was before. Seeds and precisions of a model are checked once."""
    checked = set[tuple[str, str, str]]()
    for plan, node in nodes:
        if not isinstance(node.spec, Quantize) or not node.spec.exclude:
            continue
        key = (json.dumps(plan.recipe_document, sort_keys=True), plan.task.spec.name, node.model)
        if key not in checked:
            checked.add(key)
            _check_model(plan, node.model, node.spec)


def _check_model(plan: Plan, model: str, spec: Quantize) -> None:
    from ..quantize.node_selection import select_nodes
    from .random_model import random_graph

    graph = random_graph(plan, model, plan.sizes[model])
    select_nodes(graph, spec.exclude, embeddings=spec.embeddings, source=Path(f"the {model}'s file"))
