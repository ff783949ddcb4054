"""Tasks: GLUE, a user's files, hub data sets and embedded synthetic ones; their metrics; their batches."""

from __future__ import annotations

from . import span_tables
from .batches import BucketSampler, TaskBatches, check_room, collate, encode, sorted_chunks
from .builtin import BUILTIN_TASKS
from .data import ReportedData, Split, TrainingData, of_words
from .encoded import Encoded
from .ensembles import divide_by_temperature
from .fingerprints import split_fingerprint
from .grouping import RUN, count_near
from .hub import dataset_id
from .kinds import TASK_KINDS, TaskKind
from .load import check_data_dir, fingerprint, is_at_hand, load_reported, load_training, reported_rows
from .own import own_task
from .own_files import OwnFiles, own_files
from .query_batches import QuerySampler, largest_query
from .resolve import resolve_task
from .scoring import gold_of, headline, headline_of, reported_gold, reported_scores, score
from .span_batches import EncodedSpans
from .span_parts import EncodedParts, encode_parts
from .vocabulary import byte_level, wordpiece
from .word_batches import EncodedWords

__all__ = [
    "BUILTIN_TASKS",
    "RUN",
    "TASK_KINDS",
    "BucketSampler",
    "Encoded",
    "EncodedParts",
    "EncodedSpans",
    "EncodedWords",
    "OwnFiles",
    "QuerySampler",
    "ReportedData",
    "Split",
    "TaskBatches",
    "TaskKind",
    "TrainingData",
    "byte_level",
    "check_data_dir",
    "check_room",
    "collate",
    "count_near",
    "dataset_id",
    "divide_by_temperature",
    "encode",
    "encode_parts",
    "fingerprint",
    "gold_of",
    "headline",
    "headline_of",
    "is_at_hand",
    "largest_query",
    "load_reported",
    "load_training",
    "of_words",
    "own_files",
    "own_task",
    "reported_gold",
    "reported_rows",
    "reported_scores",
    "resolve_task",
    "score",
    "sorted_chunks",
    "span_tables",
    "split_fingerprint",
    "wordpiece",
]
