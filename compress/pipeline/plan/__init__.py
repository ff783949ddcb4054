"""The types that plans are made of. They do not depend on which kinds of stages there are."""

from .context import Context, Listener
from .plan import TRAINING, Draft, Inputs, Job, Kind, Node, Plan

__all__ = ["TRAINING", "Context", "Draft", "Inputs", "Job", "Kind", "Listener", "Node", "Plan"]
