"""Sequences whose documents are kept apart: their contents, and each token's document."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from corpus_toys import write_shards

from compress.corpus import MaskedBatches, TextBatches

CLS, SEP = 2, 3
LENGTH = 16


def stream(documents: int = 200, seed: int = 3) -> np.ndarray:
    """Return documents of 1 to 40 unique tokens, each followed by [SEP]; the last is cut short."""
    sizes = np.random.default_rng(seed).integers(1, 41, documents)
    numbers = iter(range(5, 60_000))
    return np.array([token for size in sizes for token in [*(next(numbers) for _ in range(size)), SEP]][:-2])


def batches(tmp_path: Path, *, separate: bool = True, batch_size: int = 8) -> TextBatches:
    shards = write_shards(tmp_path / "shards", stream(), vocabulary=60_000)
    return TextBatches(shards, length=LENGTH, batch_size=batch_size, seed=7, separate_documents=separate)


def test_the_text_is_read_once_in_order_with_a_cls_before_each_document(tmp_path: Path):
    data = batches(tmp_path)
    ids = data.collate(np.arange(data.count))["input_ids"]
    assert (ids[:, 0] == CLS).all()
    assert (ids[:, -1] == SEP).all()
    dressed = [part for token in stream() for part in ([token, CLS] if token == SEP else [token])]
    assert ids[:, 1:-1].ravel().tolist() == dressed[: data.count * (LENGTH - 2)]
    assert len(dressed) - data.count * (LENGTH - 2) < LENGTH - 2


def test_each_document_is_numbered_with_its_own_cls_and_sep(tmp_path: Path):
    data = batches(tmp_path)
    batch = data.collate(np.arange(data.count))
    assert batch["documents"].dtype == np.int64
    source = np.cumsum(stream() == SEP)
    place = {int(token): int(source[i]) for i, token in enumerate(stream()) if token != SEP}
    several = 0
    for ids, documents in zip(batch["input_ids"], batch["documents"], strict=True):
        assert set(np.diff(documents)) <= {0, 1}
        assert documents[0] == 0
        several += documents[-1] > 0
        for number in range(documents[-1] + 1):
            own = ids[documents == number]
            assert own[0] == CLS
            assert len({place[int(token)] for token in own if token not in (CLS, SEP)}) <= 1
            assert (own[1:] != CLS).all()
            if number < documents[-1] and len(own) > 1:
                assert own[-1] == SEP
                assert (own[:-1] != SEP).all()
    assert several > data.count / 4


@pytest.mark.parametrize("masked", [False, True])
def test_nothing_is_added_where_sequences_are_one(tmp_path: Path, masked: bool):
    text = batches(tmp_path, separate=False)
    data = MaskedBatches(text) if masked else text
    assert "documents" not in data.collate(np.arange(4))


def test_hidden_tokens_and_what_is_held_out_keep_their_documents(tmp_path: Path):
    data = batches(tmp_path)
    train, held = data.held_out(0.2)
    assert held is not None
    whole, masked = data.collate(np.arange(data.count)), MaskedBatches(data).collate(np.arange(data.count))
    assert (masked["documents"] == whole["documents"]).all()
    assert (masked["labels"][whole["input_ids"] < 5] == -100).all()
    parts = [part.collate(np.arange(part.count)) for part in (train, held)]
    for name in ("input_ids", "documents"):
        assert (np.concatenate([part[name] for part in parts]) == whole[name]).all()


def test_a_sample_is_for_what_knows_no_documents(tmp_path: Path):
    assert all("documents" not in batch for batch in batches(tmp_path).sample(20))
