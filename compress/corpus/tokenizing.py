"""Text -> shards of token ids: on several threads, the same for any number of them, resumed after a kill."""

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
from .progress import Progress
from .shards import NAME, describe, dtype_for
from .sources import Source, corpus_fingerprint, paragraphs
from .special import UNKNOWN, lacks_leading_space, plain, special_ids, spelled_special, token_named

BLOCK_CHARACTERS = 1 << 18  # given to a thread at once; bounds the memory that the tokenizer's own objects take
SHARD_TOKENS = 1 << 22  # what a kill can cost: about ten seconds of one thread


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
    """Write `tokens-00000.bin`, … and `corpus.json` into `out`; the document in the latter is returned.

    Paragraphs are tokenised one by one, without special tokens; [SEP] follows each document. Those after a document's first begin
    with a space where the tokenizer puts none there itself: their first word is then no part of the word before. `max_tokens` keeps the
    first so many. Finished shards stay in `work` until the caller removes it: after a kill, the same call goes on
    behind them. `on_progress` is given the tokens so far. The tokenizer library is used on `threads`
    threads (it holds no interpreter lock); the outcome does not depend on their number.
    Raises `CompressError` for sources without a token of text, and for all that reading them meets.
    """
    special = special_ids(tokenizer)
    vocabulary = max(tokenizer.get_vocab().values()) + 1
    dtype = dtype_for(vocabulary)
    made_from = [corpus_fingerprint(sources), tokenizer.to_str(), dtype.str, max_tokens, SHARD_TOKENS, BLOCK_CHARACTERS]
    spelled = spelled_special(tokenizer)
    own = _rules(tokenizer, spelled)
    progress = Progress.resume(work, [*made_from, own] if own else made_from, dtype, special.sep)
    on_progress(progress.tokens)
    lines = _spaced(paragraphs(sources)) if "leading_space" in own else paragraphs(sources)
    blocks = islice(text_blocks(lines), progress.blocks, None)
    with closing(_encoded(blocks, plain(tokenizer), spelled, special.sep, dtype, threads)) as encoded:
        _fill(progress, encoded, float("inf") if max_tokens is None else max_tokens, on_progress)
    if not progress.tokens:
        raise CompressError(f"{', '.join(map(str, sources))}: no token of text to train on")
    progress.place(out)
    document = describe(dtype, vocabulary, special, progress.shards)
    (out / NAME).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


def text_rules(tokenizer: tokenizers.Tokenizer) -> dict[str, str]:
    """How texts are read otherwise than as the tokenizer reads them alone; nothing for a BERT's. Keys hold it."""
    return _rules(tokenizer, spelled_special(tokenizer))


def _rules(tokenizer: tokenizers.Tokenizer, spelled: frozenset[int]) -> dict[str, str]:
    rules = {"leading_space": "paragraphs"} if lacks_leading_space(tokenizer) else {}
    return rules | ({"spelled_special": "unknown"} if spelled else {})


def _spaced(lines: Iterator[str]) -> Iterator[str]:
    """With a space before each paragraph but a document's first."""
    last = ""
    for line in lines:
        yield f" {line}" if line and last else line
        last = line


def _fill(progress: Progress, encoded: Iterator[np.ndarray], limit: float, on_progress: Callable[[int], None]) -> None:
    """Every block's tokens into shards, up to `limit` tokens in all."""
    while progress.tokens < limit and (ids := next(encoded, None)) is not None:
        progress.add(ids, limit)
        on_progress(progress.tokens)
        if progress.pending >= SHARD_TOKENS:
            progress.write_shard()
    progress.write_shard()


def text_blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Consecutive paragraphs and ends of documents (`""`, one at a time), of about equal size."""
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


def _encoded(
    blocks: Iterator[list[str]],
    tokenizer: tokenizers.Tokenizer,
    spelled: frozenset[int],
    sep: int,
    dtype: np.dtype,
    threads: int,
) -> Generator[np.ndarray, None, None]:
    """The token ids of each block in order, a few blocks ahead of what is asked for; `spelled`: as of `spelled_special`."""
    unknown = token_named(tokenizer, UNKNOWN)

    def of_text(ids: list[int]) -> list[int]:
        """Without special tokens whose names the text spells: unknown ones in their place, where there is such a token."""
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
    """The library would use every core for each call; its only switch is this variable."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before
