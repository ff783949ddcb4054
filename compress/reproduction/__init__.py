"""Rerun the runs of a report from the commands on record, and compare the results figure by figure."""

from .compared import Comparison, Condition, Figure, RunComparison
from .comparing import compare
from .conditions import DECIDED_BY_TIMES
from .recorded_files import MovedData, check_moved, locate_files
from .reruns import Rerun, check_reruns, rerun_all, rerun_of

__all__ = [
    "DECIDED_BY_TIMES", "Comparison", "Condition", "Figure", "MovedData", "Rerun", "RunComparison", "check_moved", "check_reruns",
    "compare", "locate_files", "rerun_all", "rerun_of",
]  # fmt: skip
