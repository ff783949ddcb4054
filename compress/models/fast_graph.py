"""Which classifiers have a fast graph, from their config.json alone. `export.fast` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import CompressError
from .families import FAMILIES

FAST_ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "tanh")  # that it implements


def fast_graph_problem(
    config: Mapping[str, Any], *, family: str | None = None, activation: str | None = None
) -> str | None:
    """Return why a classifier with this config.json has no fast graph, worded to follow what that is for; None if it has one.

    `family`: of the classifier, if it is a student and the config is of the model that it starts from. `activation`: its own, if a stage
    changed it.
    """
    name = family or config["model_type"]
    source, target = FAMILIES.get(config["model_type"]), FAMILIES.get(name)
    if source is None or target is None or not target.fast_graph:
        return f"this {name} is of none of them"
    if target.layerless:
        return None
    if config.get("inner_group_num") not in (None, 1):
        return f"this {name} has several layers in one"
    activation = activation or config.get(source.own_name("hidden_act")) or "gelu"
    return None if activation in FAST_ACTIVATIONS else f"this {name} has another, {activation}"


def check_fast_graph(
    config: Mapping[str, Any], where: str, *, family: str | None = None, activation: str | None = None
) -> None:
    """Raise `CompressError`, starting with `where`, for a classifier that has no fast graph."""
    problem = fast_graph_problem(config, family=family, activation=activation)
    if problem is not None:
        raise CompressError(f"{where}: {fast_graph_is_for()}; {problem}: export with graph: plain")


def fast_graph_is_for() -> str:
    """Return the supported families, in words."""
    known = ", ".join(name for name, family in FAMILIES.items() if family.fast_graph)
    return f"the fast graph is for {known} with a common activation"
