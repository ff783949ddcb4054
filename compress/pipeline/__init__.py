"""Recipe -> plan -> stages in order, cached -> results."""

from .context import Listener
from .measure import BenchSettings
from .plan import Plan
from .request import Request
from .run import build_stage, plan_all, run_all

__all__ = ["BenchSettings", "Listener", "Plan", "Request", "build_stage", "plan_all", "run_all"]
