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

    def observe_student(self, **points: Point) -> dict[str, Array]:
        return observe(self.student, self.sample, points)

    def observe_teacher(self, **points: Point) -> dict[str, Array]:
        return observe(self.teacher, self.sample, points)


def project(student: Any, teacher: Any, layers: Sequence[int], sample: Sample) -> None:
    """Fill `student`, as wide as its `teacher` or narrower with equally many heads; its layer i starts from `layers[i]`.

    Both are encoders, or both classifiers. `sample`: batches of [batch, length] arrays or tensors; a few thousand tokens.
    """
    student_encoder, teacher_encoder = student.base_model, teacher.base_model
    moment = _moment(teacher_encoder, layers, sample)
    pair = _Pair(
        student_encoder, teacher_encoder, sample, algebra.shared_basis(moment, student_encoder.config.hidden_size)
    )
    _project_embeddings(pair)
    for number, source in enumerate(layers):
        student_layer, teacher_layer = layer_parts(student_encoder, number), layer_parts(teacher_encoder, source)
        _project_attention(pair, student_layer, teacher_layer)
        _project_feed_forward(pair, student_layer, teacher_layer)
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
    student_embeddings, teacher_embeddings = pair.student.embeddings, pair.teacher.embeddings
    for name in (*TABLES, TASKS):
        if hasattr(student_embeddings, name):
            fill(getattr(student_embeddings, name), array(getattr(teacher_embeddings, name).weight) @ pair.basis)
    _fit_norm(
        pair, student_embeddings.LayerNorm, pair.observe_teacher(states=(teacher_embeddings.LayerNorm, "out"))["states"]
    )
    table = FAMILIES[pair.student.config.model_type].attention.relative_bias
    if table:  # a column for each head; all heads are kept
        fill(pair.student.get_submodule(table), array(pair.teacher.get_submodule(table).weight))


def _project_attention(pair: _Pair, student: Any, teacher: Any) -> None:
    """Project queries, keys and values head by head, then fit their output to the residual stream."""
    points: dict[str, Point] = {name: (getattr(teacher, name), "out") for name in ("query", "key")}
    points |= {"stream": (teacher.query, "in"), "contexts": (teacher.output, "in")}
    points |= {"sum": (teacher.attention_norm, "in"), "states": (teacher.attention_norm, "out")}
    seen = pair.observe_teacher(**points)
    stream = _stream_map(pair, (student.query, "in"), seen["stream"])
    maps = _head_maps(pair, seen, teacher)
    for name, head_map in zip(("query", "key", "value"), maps, strict=False):
        matrix, bias = _compose_maps(getattr(teacher, name), stream)
        fill(getattr(student, name), head_map @ matrix, head_map @ bias)
    output = pair.basis.T @ array(teacher.output.weight) @ maps[3]
    _fit_output(pair, (student.output, student.attention_norm), student.query, output, teacher.output, seen)


def _head_maps(pair: _Pair, seen: dict[str, Array], teacher: Any) -> list[Array]:
    """Return block-diagonal maps of queries, keys and values to the student's heads, and of contexts back."""
    heads = pair.teacher.config.num_attention_heads
    size = pair.student.config.hidden_size // heads
    output = pair.basis.T @ array(teacher.output.weight)
    blocks: list[tuple[Array, ...]] = []
    for part in np.split(np.arange(output.shape[1]), heads):
        scores = algebra.score_maps(seen["query"][:, part], seen["key"][:, part], size)
        blocks.append((*scores, *algebra.value_maps(seen["contexts"][:, part], output[:, part], size)))
    return [algebra.block_diagonal(kind) for kind in zip(*blocks, strict=True)]


def _project_feed_forward(pair: _Pair, student: Any, teacher: Any) -> None:
    """Keep the neurons that contribute most to the residual stream, then fit their output to it."""
    points: dict[str, Point] = {"stream": (teacher.up, "in"), "neurons": (teacher.down, "in")}
    points |= {"sum": (teacher.norm, "in"), "states": (teacher.norm, "out")}
    seen = pair.observe_teacher(**points)
    output = pair.basis.T @ array(teacher.down.weight)
    kept = algebra.strongest(seen["neurons"], output, student.up.out_features)
    matrix, bias = _compose_maps(teacher.up, _stream_map(pair, (student.up, "in"), seen["stream"]))
    fill(student.up, matrix[kept], bias[kept])
    _fit_output(pair, (student.down, student.norm), student.up, output[:, kept], teacher.down, seen)


def _stream_map(pair: _Pair, point: Point, stream: Array) -> tuple[Array, Array]:
    """Return matrix and bias from the student's stream at `point` to the teacher's `stream` there."""
    states = pair.observe_student(states=point)["states"]
    return algebra.refit(pair.basis, np.zeros(len(pair.basis)), states, stream)


def _fit_output(
    pair: _Pair, student: tuple[Any, Any], reader: Any, output: Array, teacher: Any, seen: dict[str, Array]
) -> None:
    """Fit the linear layer and the LayerNorm after one half of a layer; the inputs of `reader` are the stream that the half adds to."""
    dense, norm = student
    activations = pair.observe_student(inputs=(dense, "in"), states=(reader, "in"))
    wanted = seen["sum"] @ pair.basis - activations["states"]
    fill(dense, *algebra.refit(output, pair.basis.T @ array(teacher.bias), activations["inputs"], wanted))
    _fit_norm(pair, norm, seen["states"])


def _fit_norm(pair: _Pair, norm: Any, states: Array) -> None:
    own = pair.observe_student(sums=(norm, "in"))["sums"]
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
    student_head, teacher_head = _head(student), _head(teacher)
    if student_head is None or teacher_head is None:
        return
    seen = observe(teacher, pair.sample, {"states": _last_point(pair.teacher), "neurons": teacher_head.neurons})
    stream = _stream_map(pair, _last_point(pair.student), seen["states"])
    classifier = teacher_head.classifier
    output = np.eye(teacher_head.dense.in_features) if classifier is None else array(classifier.weight)
    kept = algebra.strongest(seen["neurons"], output, student_head.dense.out_features)
    matrix, bias = _compose_maps(teacher_head.dense, stream)
    fill(student_head.dense, matrix[kept], bias[kept])
    if classifier is not None:
        pooled = observe(student, pair.sample, {"neurons": student_head.neurons})["neurons"]
        logits = seen["neurons"] @ output.T + array(classifier.bias)
        fill(student_head.classifier, *algebra.refit(output[:, kept], array(classifier.bias), pooled, logits))


def _project_token_head(pair: _Pair, student_head: Any, teacher_head: Any) -> None:
    """Project a classifier that reads the last states directly."""
    stream = _stream_map(
        pair, _last_point(pair.student), pair.observe_teacher(states=_last_point(pair.teacher))["states"]
    )
    fill(student_head, *_compose_maps(teacher_head, stream))


def _last_point(encoder: Any) -> Point:
    """Return the point of the last states."""
    return layer_parts(encoder, encoder.config.num_hidden_layers - 1).norm, "out"


def _compose_maps(linear: Any, stream: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the teacher's linear layer applied after the map `stream` of its input."""
    weight, (matrix, bias) = array(linear.weight), stream
    return weight @ matrix, weight @ bias + array(linear.bias)
