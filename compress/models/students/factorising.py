"""Convert an encoder's embeddings to ALBERT's small tables and a projection.

BERT adds three tables and normalises at width H; ALBERT does both at width E and then projects to H. A teacher may itself have narrower
tables and a projection, like ELECTRA, or no segments, like DistilBERT. All tables need one common basis. LayerNorm subtracts the mean of
the E features, so E - 1 of them carry information.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import algebra
from .activations import Array, Sample, array, fill, observe, thin_sample
from .parts import POSITIONS, SEGMENTS, TABLES, WORDS, projection_of, tables_of


def truncated_svd(rows: Array, rank: int, weights: Array | None = None) -> Array:
    """Return orthonormal columns [size, rank], the leading right singular vectors of `rows` [row, size], each row scaled by the square root
    of its weight: no other subspace of that rank loses less of the weighted squares."""
    moment = (rows if weights is None else rows * weights[:, None]).T @ rows
    return np.linalg.eigh(moment)[1][:, ::-1][:, :rank]


def factorise(student: Any, teacher: Any, sample: Sample) -> None:
    """Fill an ALBERT encoder's embeddings and projection from its teacher's embeddings.

    The basis is a truncated SVD of the tables; a row counts once, plus once for each time that `sample` uses it. The result is exact up to
    LayerNorm's epsilon if the sums of rows, less their mean, span no more than E - 1 directions; otherwise the projection is refitted to
    the teacher's embedding outputs on the sample.
    """
    student_embeddings, teacher_embeddings, mapping = student.embeddings, teacher.embeddings, projection_of(student)
    tables, teacher_projection = tables_of(teacher), projection_of(teacher)
    width, small = tables[WORDS].shape[1], student.config.embedding_size
    centred = {name: table - table.mean(1, keepdims=True) for name, table in tables.items()}
    uses = _row_uses(sample, {name: len(table) for name, table in tables.items()})
    rows, weights = (np.concatenate([part[name] for name in tables]) for part in (centred, uses))
    basis = truncated_svd(rows, small - 1, weights) @ _without_mean(small).T
    for name in TABLES:
        fill(
            getattr(student_embeddings, name),
            centred[name] @ basis if name in tables else np.zeros((student.config.type_vocab_size, small)),
        )
    fill(student_embeddings.LayerNorm, np.ones(small), np.zeros(small))
    gain, bias = array(teacher_embeddings.LayerNorm.weight), array(teacher_embeddings.LayerNorm.bias)
    start = gain[:, None] * basis * (width / small) ** 0.5  # its LayerNorm gives a length of √E, BERT's of √H
    if teacher_projection is not None:
        matrix = array(teacher_projection.weight)
        start, bias = matrix @ start, matrix @ bias + array(teacher_projection.bias)
    few = thin_sample(sample)
    small_states = observe(student, few, {"states": (mapping, "in")})["states"]
    last = teacher_embeddings.LayerNorm if teacher_projection is None else teacher_projection
    teacher_states = observe(teacher, few, {"states": (last, "out")})["states"]
    fill(mapping, *algebra.refit(start, bias, small_states, teacher_states))


def table_errors(student: Any, teacher: Any) -> dict[str, float]:
    """Return for each of the teacher's tables the relative Frobenius error after the best linear map from the student's table.

    The mean of each row, which LayerNorm subtracts, is ignored on both sides.
    """
    errors = {}
    small_tables, tables = tables_of(student), tables_of(teacher)
    for name, full in tables.items():
        small = small_tables[name]
        small, full = (table - table.mean(1, keepdims=True) for table in (small, full))
        moment = np.linalg.pinv(small.T @ small, rcond=1e-10, hermitian=True)
        left = full - small @ (moment @ (small.T @ full))
        errors[name] = float(np.linalg.norm(left) / np.linalg.norm(full))
    return errors


def _row_uses(sample: Sample, sizes: dict[str, int]) -> dict[str, Array]:
    """Return 1 + how often the sample uses each row of each table."""
    counts = {name: np.ones(size) for name, size in sizes.items()}
    for batch in sample:
        ids, mask, types = (np.asarray(batch[name]) for name in ("input_ids", "attention_mask", "token_type_ids"))
        real = mask.astype(bool)
        places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        used = {WORDS: ids, POSITIONS: places}
        if SEGMENTS in sizes:
            used[SEGMENTS] = np.minimum(types, sizes[SEGMENTS] - 1)  # one row serves both texts of a pair
        for name, rows in used.items():
            counts[name] += np.bincount(rows[real], minlength=sizes[name])
    return counts


def _without_mean(size: int) -> Array:
    """Return orthonormal columns [size, size - 1] that each sum to 0."""
    from scipy.linalg import helmert

    return helmert(size).T
