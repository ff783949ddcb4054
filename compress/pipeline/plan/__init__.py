"""Plans, and what they are made of. They do not depend on which kinds of stages there are.

A recipe becomes a plan in a `Draft`: for each stage, the function `plan` of its `Kind` adds a `Node`, to which the draft gives its key. The
finished `Plan` is all that a run looks at. It becomes artefacts node by node: a node whose key the store does not have is put into a `Job`,
with its input artefacts and the run's `Context`; the function `run` of its kind makes the artefact from that.

Imports go one way. `Node` holds the facts of its kind (`KindFacts`) and nothing that plans or runs it; `RunParts` is what a run is made of;
`Plan` adds nodes to that; `Draft` makes a plan; `Job` is a node of a plan in a context; `Kind`, with functions of all these, comes last.
`stages.registry.kind_of` finds a node's.
"""

from .context import Context, Listener
from .draft import Draft
from .job import Inputs, Job
from .kind import TRAINING, Kind
from .node import KindFacts, Node
from .plan import Plan

__all__ = ["TRAINING", "Context", "Draft", "Inputs", "Job", "Kind", "KindFacts", "Listener", "Node", "Plan"]
