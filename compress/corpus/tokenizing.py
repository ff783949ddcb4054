"""Text -> shards of token ids: multi-threaded, independent of the number of threads, resumable after a kill."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from ..errors import CompressError
from ..tokenization.special import UNKNOWN, plain_copy, special_ids, spelled_special, token_named
from ..tokenization.word_starts import lacks_leading_space
from .progress import Progress
from .shards import NAME, describe, dtype_for
from .sources import Source, corpus_fingerprint, paragraphs

BLOCK_CHARACTERS = 1 << 18  # per task of a thread; bounds the memory of the tokenizer's own objects
SHARD_TOKENS = 1 << 22  # lost at most after a kill: about ten seconds of one thread


def tokenize_corpus(
    sources: Sequence[Source],
    tokenizer: tokenizers.Tokenizer,
    out: Path,
    work: Path,
    *,
    max_tokens: int | None,
    threads: int,
    on_progress: Callable[[int], None] = lambda tokens: None,
) -> dict[str, Any]:
    """Write `tokens-00000.bin`, … and `corpus.json` into `out`; return the contents of the latter.

    Paragraphs are tokenised one by one, without special tokens; [SEP] follows each document. Paragraphs after a document's first begin with
    a space if the tokenizer does not add one, so that their first word does not continue the previous one. `max_tokens`: keep only the
    first tokens. Finished shards stay in `work` until the caller removes it: after a kill, the same call continues after them.
    `on_progress` receives the number of tokens so far. The tokenizer library runs on `threads` threads (it releases the interpreter lock);
    the result does not depend on their number. Raises `CompressError` for sources without text, and for any error in reading them.
    """
    special = special_ids(tokenizer)
    vocabulary = max(tokenizer.get_vocab().values()) + 1
    dtype = dtype_for(vocabulary)
    inputs = [corpus_fingerprint(sources), tokenizer.to_str(), dtype.str, max_tokens, SHARD_TOKENS, BLOCK_CHARACTERS]
    spelled = spelled_special(tokenizer)
    own = _rules(tokenizer, spelled)
    progress = Progress.resume(work, [*inputs, own] if own else inputs, dtype, special.sep)
    on_progress(progress.tokens)
    lines = _add_spaces(paragraphs(sources)) if "leading_space" in own else paragraphs(sources)
    blocks = islice(text_blocks(lines), progress.blocks, None)
    with closing(_encode_blocks(blocks, plain_copy(tokenizer), spelled, special.sep, dtype, threads)) as encoded:
        _fill(progress, encoded, float("inf") if max_tokens is None else max_tokens, on_progress)
    if not progress.tokens:
        raise CompressError(f"{', '.join(map(str, sources))}: no token of text to train on")
    progress.place(out)
    document = describe(dtype, vocabulary, special, progress.shards)
    (out / NAME).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


def text_rules(tokenizer: tokenizers.Tokenizer) -> dict[str, str]:
    """Return how text is read differently from the tokenizer's own behaviour; {} for BERT's. Part of the store's keys."""
    return _rules(tokenizer, spelled_special(tokenizer))


def _rules(tokenizer: tokenizers.Tokenizer, spelled: frozenset[int]) -> dict[str, str]:
    rules = {"leading_space": "paragraphs"} if lacks_leading_space(tokenizer) else {}
    return rules | ({"spelled_special": "unknown"} if spelled else {})


def _add_spaces(lines: Iterator[str]) -> Iterator[str]:
    """Yield paragraphs with a space before each except a document's first."""
    last = ""
    for line in lines:
        yield f" {line}" if line and last else line
        last = line


def _fill(progress: Progress, encoded: Iterator[np.ndarray], limit: float, on_progress: Callable[[int], None]) -> None:
    """Write every block's tokens into shards, up to `limit` tokens in total."""
    while progress.tokens < limit and (ids := next(encoded, None)) is not None:
        progress.add(ids, limit)
        on_progress(progress.tokens)
        if progress.pending >= SHARD_TOKENS:
            progress.write_shard()
    progress.write_shard()


def text_blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield blocks of similar size, of consecutive paragraphs and document ends (`""`, never repeated)."""
    block: list[str] = []
    size, last = 0, ""
    for line in lines:
        if line or last:
            block.append(line)
            size += len(line)
        last = line
        if size >= BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def _encode_blocks(
    blocks: Iterator[list[str]],
    tokenizer: tokenizers.Tokenizer,
    spelled: frozenset[int],
    sep: int,
    dtype: np.dtype,
    threads: int,
) -> Generator[np.ndarray, None, None]:
    """Yield the token ids of each block in order, computed a few blocks ahead; `spelled`: as from `spelled_special`."""
    unknown = token_named(tokenizer, UNKNOWN)

    def of_text(ids: list[int]) -> list[int]:
        """Return ids with special tokens that the text spells out replaced by the unknown token, or removed if there is none."""
        if spelled.isdisjoint(ids):
            return ids
        if unknown is None:
            return [number for number in ids if number not in spelled]
        return [unknown if number in spelled else number for number in ids]

    def encode(block: list[str]) -> np.ndarray:
        encodings = iter(tokenizer.encode_batch_fast([line for line in block if line], add_special_tokens=False))
        rows = [of_text(next(encodings).ids) if line else [sep] for line in block]
        return np.fromiter(chain.from_iterable(rows), dtype=dtype, count=sum(map(len, rows)))

    waiting: deque[Future[np.ndarray]] = deque()
    with _one_thread_a_call(), ThreadPoolExecutor(threads) as pool:
        try:
            for block in blocks:
                waiting.append(pool.submit(encode, block))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _one_thread_a_call() -> Iterator[None]:
    """Limit the library to one thread per call while open; this variable is its only switch."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before
