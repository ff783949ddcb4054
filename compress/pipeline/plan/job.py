"""A node of a plan that is about to run, with all that its stage needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ...fields import Spec
from ...store import Artifact
from .context import Context
from .node import Node
from .plan import Plan

Inputs = Mapping[str, Artifact]  # by the stage's names for them
S_co = TypeVar("S_co", bound=Spec, covariant=True)


@dataclass(frozen=True)
class Job(Generic[S_co]):
    """A node to run: its input artefacts by role, `out` for the artefact, `work` for files that survive an interruption."""

    plan: Plan
    node: Node[S_co]
    inputs: Inputs
    context: Context
    out: Path
    work: Path

    @property
    def spec(self) -> S_co:
        return self.node.spec
