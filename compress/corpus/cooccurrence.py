"""Co-occurrence counts of words, and word vectors from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .batches import TextBatches

WINDOW = 5  # tokens to either side
_SEQUENCES = 100_000  # counted at most: 12.8 million tokens at length 128
_AT_ONCE = 2_000
_SMOOTHED = 0.75
_DENSE = 1_000  # up to this many words, the whole matrix is decomposed


def count_pairs(
    text: TextBatches, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Any, np.ndarray]:
    """Return how often words co-occur in the sequences of `text`, and how often each word occurs.

    A sparse symmetric float matrix [word, word], in which a pair d tokens apart counts 1/d, up to `WINDOW`; and int64 [word]. Pairs exclude
    special tokens, and do not cross segments, or documents that `text` keeps apart. Of a long text, evenly spaced sequences are counted.
    `on_progress(done, total)` receives numbers of sequences.
    """
    from scipy import sparse

    words, special = text.shards.vocabulary, np.array(text.shards.special.every)
    pairs: Any = sparse.csr_matrix((words, words))
    each = np.zeros(words, np.int64)
    chosen = np.unique(np.linspace(0, text.count - 1, min(text.count, _SEQUENCES)).astype(np.int64))
    for start in range(0, len(chosen), _AT_ONCE):
        batch = text.collate(chosen[start : start + _AT_ONCE])
        ids = batch["input_ids"]
        plain, documents = ~np.isin(ids, special), batch.get("documents", batch["token_type_ids"])
        each += np.bincount(ids[plain], minlength=words)
        near_pairs = []
        for distance in range(1, WINDOW + 1):
            near = plain[:, distance:] & plain[:, :-distance] & (documents[:, distance:] == documents[:, :-distance])
            near_pairs.append(
                (np.full(int(near.sum()), 1 / distance), ids[:, :-distance][near], ids[:, distance:][near])
            )
        weights, before, after = (np.concatenate(parts) for parts in zip(*near_pairs, strict=True))
        pairs += sparse.csr_matrix((weights, (before, after)), (words, words))
        on_progress(start + len(ids), len(chosen))
    return pairs + pairs.T, each


def word_vectors(pairs: Any, width: int, *, seed: int) -> np.ndarray:
    """Return float32 [word, width], similar for words with similar neighbours; a word without any has zeros.

    A truncated singular value decomposition of positive pointwise mutual information (Levy and Goldberg 2014, "Neural Word Embedding as
    Implicit Matrix Factorization"), with the share of a neighbour to the power 0.75 and the singular values to the power 1/2 (Levy,
    Goldberg and Dagan 2015, doi:10.1162/tacl_a_00134, §3.1 and §3.3).
    """
    from scipy import sparse
    from scipy.sparse.linalg import svds

    entries = pairs.tocoo()
    own = np.asarray(pairs.sum(1)).ravel()
    share = own**_SMOOTHED / max((own**_SMOOTHED).sum(), 1.0)
    information = np.log(entries.data / (own[entries.row] * share[entries.col]))
    kept = information > 0
    matrix: Any = sparse.csr_matrix((information[kept], (entries.row[kept], entries.col[kept])), pairs.shape)
    used = np.flatnonzero(own)
    matrix = matrix[used][:, used]
    rank = min(width, max(0, len(used) - 1))
    vectors = np.zeros((len(own), width), np.float32)
    if not rank:
        return vectors
    left: Any
    values: Any
    if len(used) <= _DENSE:  # maybe of low rank, for which the iterative solver is not reproducible
        left, values, _ = np.linalg.svd(matrix.toarray())
    else:
        left, values, _ = svds(matrix, k=rank, rng=np.random.default_rng(seed))
    vectors[used, :rank] = left[:, :rank] * np.sqrt(values[:rank])
    return vectors
