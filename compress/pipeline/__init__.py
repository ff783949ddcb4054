"""Recipe -> plan -> stages in order, cached -> results."""

from .plan import Listener, Plan
from .request import Request
from .requested_plans import plan_all
from .results.measure import BenchSettings
from .run import build_stage, run_all

__all__ = ["BenchSettings", "Listener", "Plan", "Request", "build_stage", "plan_all", "run_all"]
