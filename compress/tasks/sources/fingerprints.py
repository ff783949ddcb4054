"""One hash for a task's data: the relevant fields of its spec, and every byte of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from ...spec.task import TaskSpec
from ...store import hash_file
from ..data import Split

READER_VERSION = 2  # raise when reading, checking or splitting gives other examples for the same files


def fingerprint_of(spec: TaskSpec, source: str, files: Sequence[tuple[str, Path]]) -> str:
    """Return the SHA-256, in hexadecimal, of (spec without its title, tuning split and headline, source, each file's name in the task and
    contents).

    The location of the user's own files does not matter, but their suffix does, since it determines how they are read.
    """
    own, beside = spec.files is not None, {"train", "dev", "tuning"}
    document = {
        "reader": READER_VERSION,
        "source": source,
        "spec": spec.model_dump(
            mode="json", exclude={"title": True, "headline": True, "files": beside, "hub": {"tuning"}}
        ),
        "files": [[f"{name}{path.suffix.lower()}" if own else name, hash_file(path)] for name, path in files],
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def split_fingerprint(split: Split) -> str:
    """Return the SHA-256, in hexadecimal, of a split's texts and labels, in order: the same for the same examples, whatever their files."""
    labels = [part.tolist() for part in split.labels] if split.labels.dtype == object else split.labels.tolist()
    document = [list(map(list, split.texts)), labels]
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()
