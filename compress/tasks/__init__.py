"""Tasks: GLUE, a user's files, hub data sets and embedded synthetic ones; their metrics; their batches."""

from __future__ import annotations

from .batches import span_tables
from .batches.encoded import Encoded
from .batches.long_examples import LongExamples, long_examples
from .batches.queries import QuerySampler, largest_query
from .batches.span_parts import EncodedParts, encode_parts
from .batches.spans import EncodedSpans
from .batches.task_batches import BucketSampler, TaskBatches, check_room, collate, encode, sorted_chunks
from .batches.words import EncodedWords
from .data import ReportedData, Split, TrainingData, of_words
from .ensembles import divide_by_temperature
from .kinds import TASK_KINDS, TaskKind
from .loading.grouping import RUN, near_to
from .loading.load import check_data_dir, fingerprint, is_at_hand, load_reported, load_training, reported_rows
from .own.files import OwnFiles, own_files
from .own.task import own_task
from .scoring import gold_of, headline, headline_of, reported_gold, reported_scores, score
from .sources.builtin import BUILTIN_TASKS
from .sources.fingerprints import split_fingerprint
from .sources.hub import dataset_id
from .sources.resolve import resolve_task
from .vocabulary import byte_level, wordpiece

__all__ = [
    "BUILTIN_TASKS",
    "RUN",
    "TASK_KINDS",
    "BucketSampler",
    "Encoded",
    "EncodedParts",
    "EncodedSpans",
    "EncodedWords",
    "LongExamples",
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
    "long_examples",
    "near_to",
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
