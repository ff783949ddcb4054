"""Start a narrower BERT from a wider one.

One orthonormal basis takes the residual stream of the teacher to the student's width. Every matrix that reads
the stream is given the teacher's matrix on what the student's stream tells of the teacher's; every matrix that
writes to it, and every LayerNorm, is fitted to the teacher's activations in that basis, from the embeddings
upwards on what the student itself computes there. At the teacher's width with all its layers nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import algebra
from .activations import Array, Point, Sample, array, fill, observe, observed_batches


@dataclass(frozen=True)
class _Pair:
    """Student and teacher encoders, the text, and the basis [teacher's width, student's]."""

    student: Any
    teacher: Any
    sample: Sample
    basis: Array

    def student_sees(self, **points: Point) -> dict[str, Array]:
        return observe(self.student, self.sample, points)

    def teacher_sees(self, **points: Point) -> dict[str, Array]:
        return observe(self.teacher, self.sample, points)


def project(student: Any, teacher: Any, layers: Sequence[int], sample: Sample) -> None:
    """Fill `student`, a BERT as wide as its `teacher` or narrower with as many heads, its layer i from `layers[i]`.

    Both are encoders, or both classifiers. `sample`: batches of [batch, length] arrays or tensors; a few
    thousand tokens.
    """
    mine, theirs = student.base_model, teacher.base_model
    moment = _moment(theirs, layers, sample)
    pair = _Pair(mine, theirs, sample, algebra.shared_basis(moment, mine.config.hidden_size))
    _project_embeddings(pair)
    for number, source in enumerate(layers):
        above, below = mine.encoder.layer[number], theirs.encoder.layer[source]
        _project_attention(pair, above, below)
        _project_feed_forward(pair, above, below)
    _project_head(pair, student, teacher)


def _moment(teacher: Any, layers: Sequence[int], sample: Sample) -> Array:
    """Second moment [size, size] of the stream at the layers that the student has, each layer counting the same."""
    points: dict[str, Point] = {"embeddings": (teacher.embeddings.LayerNorm, "out")}
    for source in layers:
        layer = teacher.encoder.layer[source]
        points[f"attention {source}"] = (layer.attention.output.LayerNorm, "out")
        points[f"output {source}"] = (layer.output.LayerNorm, "out")
    moments: dict[str, Array] = {}
    for seen in observed_batches(teacher, sample, points):
        for name, states in seen.items():
            moments[name] = moments.get(name, 0) + states.T @ states
    return np.sum([moment / np.trace(moment) for moment in moments.values()], axis=0)


def _project_embeddings(pair: _Pair) -> None:
    mine, theirs = pair.student.embeddings, pair.teacher.embeddings
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        fill(getattr(mine, name), array(getattr(theirs, name).weight) @ pair.basis)
    _fit_norm(pair, mine.LayerNorm, pair.teacher_sees(states=(theirs.LayerNorm, "out"))["states"])


def _project_attention(pair: _Pair, mine: Any, theirs: Any) -> None:
    """Queries, keys and values head by head; then what they give to the stream."""
    attention = theirs.attention
    points: dict[str, Point] = {name: (getattr(attention.self, name), "out") for name in ("query", "key")}
    points |= {"stream": (attention.self.query, "in"), "contexts": (attention.output.dense, "in")}
    points |= {"sum": (attention.output.LayerNorm, "in"), "states": (attention.output.LayerNorm, "out")}
    seen = pair.teacher_sees(**points)
    told = _told(pair, mine.attention.self.query, seen["stream"])
    maps = _head_maps(pair, seen, theirs)
    for name, way in zip(("query", "key", "value"), maps, strict=False):
        matrix, bias = _composed(getattr(attention.self, name), told)
        fill(getattr(mine.attention.self, name), way @ matrix, way @ bias)
    output = pair.basis.T @ array(attention.output.dense.weight) @ maps[3]
    _fit_output(pair, mine.attention.output, mine.attention.self.query, output, theirs.attention.output, seen)


def _head_maps(pair: _Pair, seen: dict[str, Array], theirs: Any) -> list[Array]:
    """Block-diagonal maps of queries, keys and values to the student's heads, and of contexts back."""
    heads = pair.teacher.config.num_attention_heads
    size = pair.student.config.hidden_size // heads
    output = pair.basis.T @ array(theirs.attention.output.dense.weight)
    blocks: list[tuple[Array, ...]] = []
    for part in np.split(np.arange(output.shape[1]), heads):
        scores = algebra.score_maps(seen["query"][:, part], seen["key"][:, part], size)
        blocks.append((*scores, *algebra.value_maps(seen["contexts"][:, part], output[:, part], size)))
    return [algebra.block_diagonal(kind) for kind in zip(*blocks, strict=True)]


def _project_feed_forward(pair: _Pair, mine: Any, theirs: Any) -> None:
    """The neurons that move the stream most; then what they give to it."""
    points: dict[str, Point] = {"stream": (theirs.intermediate.dense, "in"), "neurons": (theirs.output.dense, "in")}
    points |= {"sum": (theirs.output.LayerNorm, "in"), "states": (theirs.output.LayerNorm, "out")}
    seen = pair.teacher_sees(**points)
    output = pair.basis.T @ array(theirs.output.dense.weight)
    kept = algebra.strongest(seen["neurons"], output, mine.intermediate.dense.out_features)
    matrix, bias = _composed(theirs.intermediate.dense, _told(pair, mine.intermediate.dense, seen["stream"]))
    fill(mine.intermediate.dense, matrix[kept], bias[kept])
    _fit_output(pair, mine.output, mine.intermediate.dense, output[:, kept], theirs.output, seen)


def _told(pair: _Pair, reader: Any, stream: Array) -> tuple[Array, Array]:
    """The map from the student's stream, as `reader` takes it in, to the teacher's `stream` there."""
    states = pair.student_sees(states=(reader, "in"))["states"]
    return algebra.refit(pair.basis, np.zeros(len(pair.basis)), states, stream)


def _fit_output(pair: _Pair, mine: Any, reader: Any, output: Array, theirs: Any, seen: dict[str, Array]) -> None:
    """`dense` and `LayerNorm` of one half of a layer; `reader` takes in the stream to which the half adds."""
    own = pair.student_sees(inputs=(mine.dense, "in"), states=(reader, "in"))
    wanted = seen["sum"] @ pair.basis - own["states"]
    fill(mine.dense, *algebra.refit(output, pair.basis.T @ array(theirs.dense.bias), own["inputs"], wanted))
    _fit_norm(pair, mine.LayerNorm, seen["states"])


def _fit_norm(pair: _Pair, norm: Any, states: Array) -> None:
    own = pair.student_sees(sums=(norm, "in"))["sums"]
    fill(norm, *algebra.fitted_norm(own, states @ pair.basis, norm.eps))


def _project_head(pair: _Pair, student: Any, teacher: Any) -> None:
    """Pooler and classifier: of the pooler's neurons those that move the classes most, since tanh acts on each alone."""
    mine, theirs = pair.student.pooler, pair.teacher.pooler
    if mine is None or theirs is None:
        return
    last = pair.teacher.encoder.layer[-1].output.LayerNorm
    seen = pair.teacher_sees(states=(last, "out"), neurons=(theirs, "out"))
    own = pair.student_sees(states=(pair.student.encoder.layer[-1].output.LayerNorm, "out"))
    told = algebra.refit(pair.basis, np.zeros(len(pair.basis)), own["states"], seen["states"])
    classifier = getattr(teacher, "classifier", None)
    output = np.eye(theirs.dense.in_features) if classifier is None else array(classifier.weight)
    kept = algebra.strongest(seen["neurons"], output, mine.dense.out_features)
    matrix, bias = _composed(theirs.dense, told)
    fill(mine.dense, matrix[kept], bias[kept])
    if classifier is not None:
        pooled = pair.student_sees(neurons=(mine, "out"))["neurons"]
        logits = seen["neurons"] @ output.T + array(classifier.bias)
        fill(student.classifier, *algebra.refit(output[:, kept], array(classifier.bias), pooled, logits))


def _composed(linear: Any, told: tuple[Array, Array]) -> tuple[Array, Array]:
    """The teacher's linear layer on what the student tells of its input."""
    weight = array(linear.weight)
    return weight @ told[0], weight @ told[1] + array(linear.bias)
