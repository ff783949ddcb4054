"""Recipe -> plan -> stages in order, cached -> results."""

from .context import Listener
from .measure import BenchSettings
from .plan import Plan
from .run import Request, plan_all, run_all

__all__ = ["BenchSettings", "Listener", "Plan", "Request", "plan_all", "run_all"]
