"""The training examples that fit a repair: a bounded number of tokens, and the last layer's first tokens from all examples."""

from __future__ import annotations

import numpy as np
import pytest

from compress.models.heads import HEADS
from compress.pipeline.stages.fit_samples import BATCH, fit_rows
from compress.tasks import TaskBatches
from compress.tasks.batches.encoded import Encoded
from compress.tasks.batches.queries import EncodedQueries


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


def test_it_has_the_examples_asked_for_after_a_batch_of_fewer() -> None:
    data = batches(2100, 16)  # the epoch's small batch, of 20, is not its last
    assert min(len(data.indices(step)) for step in range(64)) == 20
    assert len(fit_rows(data, 2048, HEADS["classification"])) == 2048
    assert len(fit_rows(data, 3000, HEADS["classification"])) == 2100


def test_batches_of_whole_queries_leave_no_example_out() -> None:
    pairs = np.stack([np.arange(400) % 20 == 0, np.arange(400) // 20], axis=1).astype(np.float64)
    ids, types = [np.zeros(16, np.int32)] * 400, [np.zeros(16, np.int8)] * 400
    data = TaskBatches(EncodedQueries(ids, types, pairs), batch_size=BATCH, pad_id=0, seed=1)  # a query of 20 each
    assert len(fit_rows(data, 128, HEADS["ranking"])) == 128
