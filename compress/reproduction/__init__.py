"""Runs of a report made again from the commands on record, and compared with it figure by figure."""

from .compared import Comparison, Figure, RunComparison
from .comparing import compare
from .places import MovedData, check_moved, placed
from .reruns import Rerun, check_reruns, rerun_all, rerun_of

__all__ = [
    "Comparison", "Figure", "MovedData", "Rerun", "RunComparison", "check_moved", "check_reruns", "compare", "placed", "rerun_all",
    "rerun_of",
]  # fmt: skip
