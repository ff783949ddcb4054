"""The examples of a task that a stage trains on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...augment import read_augmented
from ...store import Artifact
from ...tasks import Encoded, Split, encode
from ..plan.sources import TaskSource

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def training_examples(task: TaskSource, tokenizer: Tokenizer, length: int, augmented: Artifact | None) -> Encoded:
    """The training split in tokens; with its copies after it where an augment stage made some."""
    if augmented is None:
        return task.encoded("train", tokenizer, length)
    train, copies = task.data.train, read_augmented(augmented.path)
    texts = tuple([*own, *new] for own, new in zip(train.texts, copies.texts, strict=True))
    return encode(tokenizer, Split(texts, np.concatenate([train.labels, copies.labels])), length)
