"""The training examples that fit a repair: a bounded number of tokens, and the last layer's first tokens from all examples."""

from __future__ import annotations

import numpy as np
import pytest

from compress.models.heads import HEADS
from compress.pipeline.stages.fit_samples import BATCH, fit_rows
from compress.tasks import TaskBatches
from compress.tasks.encoded import Encoded


def batches(count: int, length: int) -> TaskBatches:
    ids = [np.zeros(length, np.int32)] * count
    types = [np.zeros(length, np.int8)] * count
    return TaskBatches(Encoded(ids, types, np.zeros(count, np.int64)), batch_size=BATCH, pad_id=0, seed=1)


@pytest.mark.parametrize(("length", "held"), [(16, 600), (400, 163), (70_000, 1)])
def test_what_does_not_fit_the_memory_serves_the_last_layer(length: int, held: int) -> None:
    data = batches(700, length)
    rows = fit_rows(data, 600, HEADS["classification"])
    assert (len(rows.held), len(rows)) == (held, 600)
    assert len({*rows.held.tolist(), *rows.further.tolist()}) == 600


def test_a_head_that_reads_every_token_needs_no_further_texts() -> None:
    rows = fit_rows(batches(700, 400), 600, HEADS["tagging"])
    assert len(rows) == len(rows.held) == 163 and not len(rows.further)
