"""The Hugging Face hub: names of repositories, whether it can be reached, data sets at a commit, and why it refuses requests."""

from .checksums import drop_damaged
from .data_sets import error_text, find_cached, load_splits, quiet_data_sets
from .names import is_commit, repository
from .reach import cache_only, endpoint, is_reachable, out_of_reach, quiet_client
from .refusals import BAD_TOKEN, LOG_IN, one_line, reason

__all__ = [
    "BAD_TOKEN",
    "LOG_IN",
    "cache_only",
    "drop_damaged",
    "endpoint",
    "error_text",
    "find_cached",
    "is_commit",
    "is_reachable",
    "load_splits",
    "one_line",
    "out_of_reach",
    "quiet_client",
    "quiet_data_sets",
    "reason",
    "repository",
]
