"""Initialise a narrower encoder from a wider one of its family: a BERT, or an MPNet, whose relative position bias is kept.

One orthonormal basis maps the teacher's residual stream to the student's width. Matrices that read the stream are the teacher's, applied to
a linear prediction of the teacher's stream from the student's. Matrices that write to it, and LayerNorms, are fitted to the teacher's
activations in that basis, from the embeddings upwards, with the student's own activations as inputs. At the teacher's width and depth
nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..families import FAMILIES
from ..heads import head_of
from . import algebra
from .activations import Array, Point, Sample, array, fill, observe, observed_batches
from .parts import TABLES, TASKS, head_parts, layer_parts


@dataclass(frozen=True)
class _Pair:
    """Student and teacher encoders, the text, and the basis [teacher's width, student's width]."""

    student: Any
    teacher: Any
    sample: Sample
    basis: Array

    def student_sees(self, **points: Point) -> dict[str, Array]:
        return observe(self.student, self.sample, points)

    def teacher_sees(self, **points: Point) -> dict[str, Array]:
        return observe(self.teacher, self.sample, points)


def project(student: Any, teacher: Any, layers: Sequence[int], sample: Sample) -> None:
    """Fill `student`, as wide as its `teacher` or narrower with equally many heads; its layer i starts from `layers[i]`.

    Both are encoders, or both classifiers. `sample`: batches of [batch, length] arrays or tensors; a few thousand tokens.
    """
    mine, theirs = student.base_model, teacher.base_model
    moment = _moment(theirs, layers, sample)
    pair = _Pair(mine, theirs, sample, algebra.shared_basis(moment, mine.config.hidden_size))
    _project_embeddings(pair)
    for number, source in enumerate(layers):
        above, below = layer_parts(mine, number), layer_parts(theirs, source)
        _project_attention(pair, above, below)
        _project_feed_forward(pair, above, below)
    _project_head(pair, student, teacher)


def _moment(teacher: Any, layers: Sequence[int], sample: Sample) -> Array:
    """Return the second moment [size, size] of the residual stream at the student's layers, equally weighted."""
    points: dict[str, Point] = {"embeddings": (teacher.embeddings.LayerNorm, "out")}
    for source in layers:
        layer = layer_parts(teacher, source)
        points[f"attention {source}"] = (layer.attention_norm, "out")
        points[f"output {source}"] = (layer.norm, "out")
    moments: dict[str, Array] = {}
    for seen in observed_batches(teacher, sample, points):
        for name, states in seen.items():
            moments[name] = moments.get(name, 0) + states.T @ states
    return np.sum([moment / np.trace(moment) for moment in moments.values()], axis=0)


def _project_embeddings(pair: _Pair) -> None:
    mine, theirs = pair.student.embeddings, pair.teacher.embeddings
    for name in (*TABLES, TASKS):
        if hasattr(mine, name):
            fill(getattr(mine, name), array(getattr(theirs, name).weight) @ pair.basis)
    _fit_norm(pair, mine.LayerNorm, pair.teacher_sees(states=(theirs.LayerNorm, "out"))["states"])
    if table := FAMILIES[pair.student.config.model_type].relative_bias:  # a column for each head; all heads are kept
        fill(pair.student.get_submodule(table), array(pair.teacher.get_submodule(table).weight))


def _project_attention(pair: _Pair, mine: Any, theirs: Any) -> None:
    """Project queries, keys and values head by head, then fit their output to the residual stream."""
    points: dict[str, Point] = {name: (getattr(theirs, name), "out") for name in ("query", "key")}
    points |= {"stream": (theirs.query, "in"), "contexts": (theirs.output, "in")}
    points |= {"sum": (theirs.attention_norm, "in"), "states": (theirs.attention_norm, "out")}
    seen = pair.teacher_sees(**points)
    stream = _stream_map(pair, (mine.query, "in"), seen["stream"])
    maps = _head_maps(pair, seen, theirs)
    for name, way in zip(("query", "key", "value"), maps, strict=False):
        matrix, bias = _compose_maps(getattr(theirs, name), stream)
        fill(getattr(mine, name), way @ matrix, way @ bias)
    output = pair.basis.T @ array(theirs.output.weight) @ maps[3]
    _fit_output(pair, (mine.output, mine.attention_norm), mine.query, output, theirs.output, seen)


def _head_maps(pair: _Pair, seen: dict[str, Array], theirs: Any) -> list[Array]:
    """Return block-diagonal maps of queries, keys and values to the student's heads, and of contexts back."""
    heads = pair.teacher.config.num_attention_heads
    size = pair.student.config.hidden_size // heads
    output = pair.basis.T @ array(theirs.output.weight)
    blocks: list[tuple[Array, ...]] = []
    for part in np.split(np.arange(output.shape[1]), heads):
        scores = algebra.score_maps(seen["query"][:, part], seen["key"][:, part], size)
        blocks.append((*scores, *algebra.value_maps(seen["contexts"][:, part], output[:, part], size)))
    return [algebra.block_diagonal(kind) for kind in zip(*blocks, strict=True)]


def _project_feed_forward(pair: _Pair, mine: Any, theirs: Any) -> None:
    """Keep the neurons that contribute most to the residual stream, then fit their output to it."""
    points: dict[str, Point] = {"stream": (theirs.up, "in"), "neurons": (theirs.down, "in")}
    points |= {"sum": (theirs.norm, "in"), "states": (theirs.norm, "out")}
    seen = pair.teacher_sees(**points)
    output = pair.basis.T @ array(theirs.down.weight)
    kept = algebra.strongest(seen["neurons"], output, mine.up.out_features)
    matrix, bias = _compose_maps(theirs.up, _stream_map(pair, (mine.up, "in"), seen["stream"]))
    fill(mine.up, matrix[kept], bias[kept])
    _fit_output(pair, (mine.down, mine.norm), mine.up, output[:, kept], theirs.down, seen)


def _stream_map(pair: _Pair, point: Point, stream: Array) -> tuple[Array, Array]:
    """Return matrix and bias from the student's stream at `point` to the teacher's `stream` there."""
    states = pair.student_sees(states=point)["states"]
    return algebra.refit(pair.basis, np.zeros(len(pair.basis)), states, stream)


def _fit_output(
    pair: _Pair, mine: tuple[Any, Any], reader: Any, output: Array, theirs: Any, seen: dict[str, Array]
) -> None:
    """Fit the linear layer and the LayerNorm after one half of a layer; the inputs of `reader` are the stream that the half adds to."""
    dense, norm = mine
    own = pair.student_sees(inputs=(dense, "in"), states=(reader, "in"))
    wanted = seen["sum"] @ pair.basis - own["states"]
    fill(dense, *algebra.refit(output, pair.basis.T @ array(theirs.bias), own["inputs"], wanted))
    _fit_norm(pair, norm, seen["states"])


def _fit_norm(pair: _Pair, norm: Any, states: Array) -> None:
    own = pair.student_sees(sums=(norm, "in"))["sums"]
    fill(norm, *algebra.fitted_norm(own, states @ pair.basis, norm.eps))


@dataclass(frozen=True)
class _Head:
    """The linear layer that reads the first token's state, where its activations are observed, and the classifier behind it, if any."""

    dense: Any
    neurons: Point
    classifier: Any


def _head(model: Any) -> _Head | None:
    if pooler := getattr(model.base_model, "pooler", None):
        return _Head(pooler.dense, (pooler, "out"), getattr(model, "classifier", None))
    if model is model.base_model:
        return None
    first, last = head_parts(model)
    return _Head(first, (last, "in"), last)


def _project_head(pair: _Pair, student: Any, teacher: Any) -> None:
    """Project pooler and classifier. Of the pooler's neurons, keep those that move the classes most, since tanh acts on each alone."""
    if head_of(teacher).per_token:
        _project_token_head(pair, *(head_parts(model)[0] for model in (student, teacher)))
        return
    mine, theirs = _head(student), _head(teacher)
    if mine is None or theirs is None:
        return
    seen = observe(teacher, pair.sample, {"states": _last_point(pair.teacher), "neurons": theirs.neurons})
    stream = _stream_map(pair, _last_point(pair.student), seen["states"])
    classifier = theirs.classifier
    output = np.eye(theirs.dense.in_features) if classifier is None else array(classifier.weight)
    kept = algebra.strongest(seen["neurons"], output, mine.dense.out_features)
    matrix, bias = _compose_maps(theirs.dense, stream)
    fill(mine.dense, matrix[kept], bias[kept])
    if classifier is not None:
        pooled = observe(student, pair.sample, {"neurons": mine.neurons})["neurons"]
        logits = seen["neurons"] @ output.T + array(classifier.bias)
        fill(mine.classifier, *algebra.refit(output[:, kept], array(classifier.bias), pooled, logits))


def _project_token_head(pair: _Pair, mine: Any, theirs: Any) -> None:
    """Project a classifier that reads the last states directly."""
    stream = _stream_map(pair, _last_point(pair.student), pair.teacher_sees(states=_last_point(pair.teacher))["states"])
    fill(mine, *_compose_maps(theirs, stream))


def _last_point(encoder: Any) -> Point:
    """Return the point of the last states."""
    return layer_parts(encoder, encoder.config.num_hidden_layers - 1).norm, "out"


def _compose_maps(linear: Any, stream: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the teacher's linear layer applied after the map `stream` of its input."""
    weight, (matrix, bias) = array(linear.weight), stream
    return weight @ matrix, weight @ bias + array(linear.bias)
