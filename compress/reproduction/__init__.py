"""Rerun the runs of a report from the commands on record, and compare the results figure by figure."""

from .conditions import DECIDED_BY_TIMES
from .figures import Condition, Figure, ReproducedRun, Reproduction
from .recorded_files import MovedData, check_moved, locate_files
from .reruns import Rerun, check_reruns, rerun_all, rerun_of
from .verdicts import compare_reruns

__all__ = [
    "DECIDED_BY_TIMES", "Condition", "Figure", "MovedData", "ReproducedRun", "Reproduction", "Rerun", "check_moved", "check_reruns",
    "compare_reruns", "locate_files", "rerun_all", "rerun_of",
]  # fmt: skip
