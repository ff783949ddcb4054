"""Text -> shards: every token once and in order, whatever the threads, blocks and shards."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from corpus_toys import WORDS, bert_tokenizer, reference_tokens, roberta_tokenizer, text, write_text

from compress.corpus import TextBatches, TokenShards, corpus_sources, tokenize_corpus, tokenizing
from compress.errors import CompressError
from compress.store import Store


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make several blocks per shard and several shards from little text."""
    monkeypatch.setattr(tokenizing, "BLOCK_CHARACTERS", 1000)
    monkeypatch.setattr(tokenizing, "SHARD_TOKENS", 700)


def tokenize(source: Path, out: Path, tokenizer: tokenizers.Tokenizer, **options: Any) -> dict[str, Any]:
    options = {"max_tokens": None, "threads": 1} | options
    return tokenize_corpus(corpus_sources([str(source)]), tokenizer, out, out.with_suffix(".work"), **options)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def all_tokens(folder: Path) -> list[int]:
    shards = TokenShards.open(folder)
    return shards.read(0, len(shards)).tolist()


def test_the_shards_hold_every_token_in_order_with_a_separator_after_each_document(tmp_path: Path):
    documents = text(300)
    info = tokenize(write_text(tmp_path / "a.txt", documents), tmp_path / "out", bert_tokenizer())
    expected = reference_tokens(bert_tokenizer(), documents, sep=3)
    assert all_tokens(tmp_path / "out") == expected
    assert (info["tokens"], info["documents"], info["dtype"]) == (len(expected), 300, "uint16")
    assert len(info["shards"]) > 3
    assert info == json.loads((tmp_path / "out" / "corpus.json").read_text())


@pytest.mark.parametrize("make", [bert_tokenizer, roberta_tokenizer])
def test_packed_sequences_decode_to_the_text_in_order(tmp_path: Path, make):
    documents, tokenizer = text(100), make()
    info = tokenize(write_text(tmp_path / "a.txt", documents), tmp_path / "out", tokenizer)
    batches = TextBatches(TokenShards.open(tmp_path / "out"), length=50, batch_size=4, seed=1)
    packed = batches.collate(np.arange(batches.count))["input_ids"]
    assert (packed[:, 0] == info["special"]["cls"]).all()
    assert (packed[:, -1] == info["special"]["sep"]).all()
    decoded = tokenizer.decode(packed[:, 1:-1].ravel().tolist(), skip_special_tokens=True)
    joined = (" " if make is bert_tokenizer else "").join(" ".join(document) for document in documents)
    joined = joined.replace(" .", ".") if make is bert_tokenizer else joined
    assert len(decoded) > 0.95 * len(joined)
    assert joined.startswith(decoded)


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_byte(tmp_path: Path, threads: int):
    source = write_text(tmp_path / "a.txt", text(300))
    tokenize(source, tmp_path / "one", bert_tokenizer(), threads=1)
    tokenize(source, tmp_path / "many", bert_tokenizer(), threads=threads)
    assert contents(tmp_path / "one") == contents(tmp_path / "many")


def test_blocks_and_shards_change_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = write_text(tmp_path / "a.txt", text(300))
    tokenize(source, tmp_path / "small", bert_tokenizer())
    monkeypatch.setattr(tokenizing, "BLOCK_CHARACTERS", 77)
    monkeypatch.setattr(tokenizing, "SHARD_TOKENS", 1 << 20)
    tokenize(source, tmp_path / "large", bert_tokenizer())
    assert all_tokens(tmp_path / "small") == all_tokens(tmp_path / "large")
    assert len(contents(tmp_path / "large")) == 2


def test_the_callers_settings_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tokenizer, source = bert_tokenizer(), write_text(tmp_path / "a.txt", text(20))
    before = tokenizer.to_str()
    for value in ("true", None):
        monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
        if value:
            monkeypatch.setenv("TOKENIZERS_PARALLELISM", value)
        tokenize(source, tmp_path / f"out{value}", tokenizer)
        assert os.environ.get("TOKENIZERS_PARALLELISM") == value
    assert tokenizer.to_str() == before


@pytest.mark.parametrize("limit", [1, 699, 1500, 10**9])
def test_max_tokens_keeps_the_first_ones_exactly(tmp_path: Path, limit: int):
    documents = text(300)
    info = tokenize(write_text(tmp_path / "a.txt", documents), tmp_path / "out", bert_tokenizer(), max_tokens=limit)
    expected = reference_tokens(bert_tokenizer(), documents, sep=3)[:limit]
    assert all_tokens(tmp_path / "out") == expected
    assert info["documents"] == expected.count(3)


def test_special_tokens_written_in_the_text_are_text(tmp_path: Path):
    source = tmp_path / "a.txt"
    source.write_text("good [SEP] film [MASK] [CLS] [PAD]\n")
    tokenize(source, tmp_path / "bert", bert_tokenizer())
    assert set(all_tokens(tmp_path / "bert")[:-1]) & {0, 2, 3, 4} == set()
    source.write_text("good</s>film<mask>\n")
    tokenize(source, tmp_path / "roberta", roberta_tokenizer())
    ids = all_tokens(tmp_path / "roberta")
    assert (ids.count(2), ids[-1], len(ids)) == (1, 2, len("good</s>film<mask>") + 1)


def test_documents_without_a_token_leave_no_separator(tmp_path: Path):
    source = tmp_path / "a.txt"
    source.write_text(
        "\u200b\n\ngood film\n\n\u200b\n\n\u200b\n\n\n\nbad\n\n\u200b\n"
    )  # a zero-width space gives no token
    info = tokenize(source, tmp_path / "out", bert_tokenizer())
    assert all_tokens(tmp_path / "out") == [5, 7, 3, 6, 3]
    assert info["documents"] == 2
    source.write_text("\u200b\n")
    with pytest.raises(CompressError, match=r"a\.txt: no token of text to train on"):
        tokenize(source, tmp_path / "none", bert_tokenizer())


def test_a_large_vocabulary_takes_four_bytes_a_token(tmp_path: Path):
    words = [f"w{i}" for i in range(70_000)]
    source = tmp_path / "a.txt"
    source.write_text("w69999 w0 w65531 w65530\n")
    info = tokenize(source, tmp_path / "out", bert_tokenizer(words))
    assert info["dtype"] == "uint32"
    assert all_tokens(tmp_path / "out") == [70_004, 5, 65_536, 65_535, 3]
    assert (tmp_path / "out" / "tokens-00000.bin").stat().st_size == 20


def test_work_of_another_text_or_tokenizer_or_a_damaged_one_is_not_taken(tmp_path: Path):
    documents = text(300)
    source, out = write_text(tmp_path / "a.txt", documents), tmp_path / "out"
    at_start: list[int] = []

    def started(tokenizer: tokenizers.Tokenizer, **options: Any) -> int:
        at_start.clear()
        tokenize(source, out, tokenizer, on_progress=at_start.append, **options)
        return at_start[0]

    assert started(bert_tokenizer()) == 0
    assert started(bert_tokenizer()) == len(reference_tokens(bert_tokenizer(), documents, 3))
    assert started(bert_tokenizer(WORDS[::-1])) == 0
    assert started(bert_tokenizer(WORDS[::-1]), max_tokens=2000) == 0
    write_text(source, documents[::-1])
    assert started(bert_tokenizer()) == 0
    shard = tmp_path / "out.work" / "tokens-00001.bin"
    shard.write_bytes(shard.read_bytes()[:-2])
    assert started(bert_tokenizer()) == 0
    assert all_tokens(out) == reference_tokens(bert_tokenizer(), documents[::-1], 3)


def test_the_store_keeps_what_is_made(tmp_path: Path):
    source = write_text(tmp_path / "a.txt", text(300))

    def make(out: Path, work: Path) -> dict[str, Any]:
        return tokenize_corpus(corpus_sources([str(source)]), bert_tokenizer(), out, work, max_tokens=None, threads=2)

    artifact = Store(tmp_path / "store").build("0" * 32, make, describe={})
    stored_artifact = Store(tmp_path / "store").find("0" * 32)
    assert stored_artifact is not None
    assert stored_artifact.info == artifact.info
    assert len(TokenShards.open(stored_artifact.path)) == artifact.info["tokens"]


def test_a_tokenizer_that_dresses_text_otherwise_is_refused(tmp_path: Path):
    tokenizer = bert_tokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A [SEP]", special_tokens=[("[SEP]", 3)]
    )
    with pytest.raises(CompressError, match=r"turns 1 tokens of text into 2; expected one special token before"):
        tokenize(write_text(tmp_path / "a.txt", text(3)), tmp_path / "out", tokenizer)


def test_an_error_in_the_middle_of_a_file_reaches_the_caller(tmp_path: Path):
    source = write_text(tmp_path / "a.txt", text(300))
    source.write_bytes(source.read_bytes() + b"\n\xff\n")
    with pytest.raises(CompressError, match=r"a\.txt:\d+: expected UTF-8"):
        tokenize(source, tmp_path / "out", bert_tokenizer(), threads=2)
