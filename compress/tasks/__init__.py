"""Tasks: GLUE, a user's files, hub data sets and embedded synthetic ones; their metrics; their batches."""

from __future__ import annotations

from .batches import BucketSampler, Encoded, TaskBatches, check_room, collate, encode, sorted_chunks
from .builtin import BUILTIN_TASKS
from .data import Split, TaskData
from .load import check_data_dir, fingerprint, load_task
from .metrics import headline, score
from .resolve import resolve_task
from .tuning import normalized
from .vocabulary import byte_level, wordpiece

__all__ = [
    "BUILTIN_TASKS",
    "BucketSampler",
    "Encoded",
    "Split",
    "TaskBatches",
    "TaskData",
    "byte_level",
    "check_data_dir",
    "check_room",
    "collate",
    "encode",
    "fingerprint",
    "headline",
    "load_task",
    "normalized",
    "resolve_task",
    "score",
    "sorted_chunks",
    "wordpiece",
]
