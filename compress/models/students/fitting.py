"""Fit a shared block to the teacher's activations by least squares.

A block that replaces many layers cannot copy them. It takes the attention heads and feed-forward neurons that contribute most to the
residual stream, equally many from each layer it replaces. Then its two output matrices and two LayerNorms are fitted, over all those layers
at once, to what the teacher adds to its stream there, with the teacher's own stream as input. Identical layers, and a single layer, are
copied unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..layer_maps import layer_pairs
from . import algebra
from .activations import (
    FEW_TOKENS,
    Array,
    Point,
    Sample,
    array,
    evaluating,
    fill,
    observed_batches,
    padded_batches,
    thin_sample,
)
from .parts import layer_parts, projection_of

_NUMBERS = 40_000_000  # activations of neurons that may be held over all layers: 320 MB in float64
# The module that writes to the residual stream, and its LayerNorm.
_HALVES = {
    "attention": ("output", "attention_norm"),
    "ffn": ("down", "norm"),
}


@dataclass(frozen=True)
class Repeat:
    """One pass through a block: the `AlbertLayer`, and the teacher layers (from 0) `first` … `last` that it replaces."""

    layer: Any
    first: int
    last: int


def repeats(encoder: Any, *, teacher_layers: int) -> list[Repeat]:
    """Return the passes of an ALBERT encoder in order, with the teacher's layers assigned by the uniform map."""
    config = encoder.config
    count, groups = config.num_hidden_layers, config.num_hidden_groups
    ends = layer_pairs("uniform", student_layers=count, teacher_layers=teacher_layers)
    starts = [0, *(end for _, end in ends)]
    blocks = [group.albert_layers[0] for group in encoder.encoder.albert_layer_groups]
    return [Repeat(blocks[number * groups // count], starts[number], end - 1) for number, (_, end) in enumerate(ends)]


def sharing(passes: Sequence[Repeat]) -> list[list[Repeat]]:
    """Return the passes of each block, in order of first use."""
    blocks: dict[int, list[Repeat]] = {}
    for each in passes:
        blocks.setdefault(id(each.layer), []).append(each)
    return list(blocks.values())


@dataclass(frozen=True)
class _Text:
    """The sample as seen by the teacher. Layers count from 0.

    `hidden[layer][batch]`: a layer's inputs, padded tensors. `seen`: inputs (`sum`) and outputs (`states`) of the LayerNorm of half a
    layer, [real token, size]. `energies`: the variance that each of its heads or neurons contributes to the residual stream.
    """

    teacher: Any
    hidden: list[list[Any]]
    masks: list[Any]
    seen: dict[str, Array]
    energies: dict[tuple[str, int], Array]

    def stream(self, layer: int) -> Array:
        """Return a layer's inputs, [real token, size]."""
        return _real_tokens(self.hidden[layer], self.masks)

    def passed(self, attention: Any, layer: int) -> tuple[Array, Array]:
        """Return the outputs of an ALBERT attention on a layer's inputs, and the inputs of its output matrix."""
        import torch

        outputs: list[Any] = []
        inputs: list[Any] = []
        handle = attention.dense.register_forward_pre_hook(lambda module, taken: inputs.append(taken[0]))
        with torch.no_grad():
            for hidden, mask in zip(self.hidden[layer], self.masks, strict=True):
                additive = (1.0 - mask[:, None, None, :].to(hidden.dtype)) * torch.finfo(hidden.dtype).min
                outputs.append(attention(hidden, additive)[0])
        handle.remove()
        return _real_tokens(outputs, self.masks), _real_tokens(inputs, self.masks)


def fit_blocks(passes: Sequence[Repeat], teacher: Any, sample: Sample) -> None:
    """Fill the blocks of `passes` from `teacher`, an encoder of the same width, heads and neurons with separate layers."""
    layers = sorted({each.last for each in passes})
    tokens = min(FEW_TOKENS, _NUMBERS // (layer_parts(teacher, 0).up.out_features * len(layers)))
    text = _read(teacher, thin_sample(sample, tokens), layers)
    with ExitStack() as modes:
        for each in passes:
            modes.enter_context(evaluating(each.layer))
        for group in sharing(passes):
            _fit_attention(group, text)
            _fit_feed_forward(group, text)


def _read(teacher: Any, sample: Sample, layers: Sequence[int]) -> _Text:
    import torch

    norms: dict[str, Point] = {}
    for layer in layers:
        for half, (_, name) in _HALVES.items():
            norm = getattr(layer_parts(teacher, layer), name)
            norms |= {f"{half} {layer} sum": (norm, "in"), f"{half} {layer} states": (norm, "out")}
    depth = teacher.config.num_hidden_layers
    stream: dict[str, Point] = {"0": (projection_of(teacher) or teacher.embeddings.LayerNorm, "out")}
    stream |= {str(number + 1): (layer_parts(teacher, number).norm, "out") for number in range(depth)}
    batches = list(padded_batches(teacher, sample, stream | norms))
    masks = [torch.as_tensor(batch["attention_mask"], device=batches[0]["0"].device) for batch in sample]
    streams = [[batch[name] for batch in batches] for name in stream]
    seen = {name: _real_tokens([batch[name] for batch in batches], masks) for name in norms}
    return _Text(teacher, streams, masks, seen, _energies(teacher, sample, layers))


def _real_tokens(padded: Sequence[Any], masks: Sequence[Any]) -> Array:
    """Return the real tokens of padded batches, [real token, size]."""
    return np.concatenate([array(tensor[mask.bool()]) for tensor, mask in zip(padded, masks, strict=True)])


def _energies(teacher: Any, sample: Sample, layers: Sequence[int]) -> dict[tuple[str, int], Array]:
    """Return the variance that each head and neuron of `layers` contributes to the residual stream."""
    modules = {
        (half, number): getattr(layer_parts(teacher, number), dense)
        for number in layers
        for half, (dense, _) in _HALVES.items()
    }
    points: dict[str, Point] = {f"{half} {number}": (module, "in") for (half, number), module in modules.items()}
    sums: dict[str, Any] = dict.fromkeys(points, 0.0)
    squares: dict[str, Any] = dict.fromkeys(points, 0.0)
    count, heads = 0, teacher.config.num_attention_heads
    for seen in observed_batches(teacher, sample, points):
        for name, inputs in seen.items():
            grouped = inputs.reshape(len(inputs), heads if name.startswith("attention") else inputs.shape[1], -1)
            sums[name] += grouped.sum(0)
            squares[name] += np.einsum("tgi,tgj->gij", grouped, grouped)
        count += len(next(iter(seen.values())))
    energies = {}
    for (half, number), module in modules.items():
        mean, square = (total[f"{half} {number}"] / count for total in (sums, squares))
        output = array(module.weight)
        output = output.reshape(len(output), *mean.shape)
        covariance = square - mean[:, :, None] * mean[:, None, :]
        energies[half, number] = np.einsum("ogi,gij,ogj->g", output, covariance, output, optimize=True)
    return energies


def _fit_attention(group: Sequence[Repeat], text: _Text) -> None:
    """Fit the attention. Head i is head i of one of the layers, so that scores can be compared head by head."""
    attention = group[0].layer.attention
    _take_heads(attention, group, text)
    streams = [text.stream(each.first) for each in group]
    inputs = [text.passed(attention, each.first)[1] for each in group]
    _fit_half(attention.dense, attention.LayerNorm, "attention", group, text, streams, inputs)


def _fit_feed_forward(group: Sequence[Repeat], text: _Text) -> None:
    block = group[0].layer
    _take_neurons(block, group, text)
    streams = [text.passed(each.layer.attention, each.first)[0] for each in group]
    inputs = [_neurons(block, stream) for stream in streams]
    _fit_half(block.ffn_output, block.full_layer_layer_norm, "ffn", group, text, streams, inputs)


def _neurons(layer: Any, stream: Array) -> Array:
    import torch

    with torch.no_grad():
        return array(layer.activation(layer.ffn(torch.from_numpy(stream).to(layer.ffn.weight))))


def _fit_half(
    dense: Any,
    norm: Any,
    half: str,
    group: Sequence[Repeat],
    text: _Text,
    streams: Sequence[Array],
    inputs: Sequence[Array],
) -> None:
    """Fit the output matrix, so that its output plus the stream gives the teacher's sums, and the LayerNorm, so that it gives the teacher's
    states."""
    stream, taken = _interleave_layers(streams), _interleave_layers(inputs)
    sums, states = (
        _interleave_layers([text.seen[f"{half} {each.last} {what}"] for each in group]) for what in ("sum", "states")
    )
    weight, bias = algebra.refit(array(dense.weight), array(dense.bias), taken, sums - stream)
    fill(dense, weight, bias)
    fill(norm, *algebra.fitted_norm(stream + taken @ weight.T + bias, states, norm.eps))


def _interleave_layers(layers: Sequence[Array]) -> Array:
    """Return the layers' rows interleaved, so that the rows that a regression holds out to choose its strength come from all layers."""
    return np.stack(layers, axis=1).reshape(-1, layers[0].shape[1])


def _take_heads(attention: Any, group: Sequence[Repeat], text: _Text) -> None:
    """Take each head from one of the layers, equally many from each: the choice that contributes most to the residual stream."""
    from scipy.optimize import linear_sum_assignment

    layers = [layer_parts(text.teacher, each.last) for each in group]
    # Assign heads to layers: each layer has as many seats as it gives heads, and the sum of energies is the largest.
    seats = np.repeat(np.arange(len(group)), _shares(attention.num_attention_heads, len(group)))
    energy = np.stack([text.energies["attention", each.last] for each in group], axis=1)
    chosen = seats[linear_sum_assignment(-energy[:, seats])[1]]
    rows = np.repeat(chosen, attention.attention_head_size)  # the layer of each row of queries, keys and values
    for name in ("query", "key", "value"):
        sources = [getattr(layer, name) for layer in layers]
        weight, bias = ([array(getattr(source, kind)) for source in sources] for kind in ("weight", "bias"))
        fill(getattr(attention, name), _pick_rows(weight, rows), _pick_rows(bias, rows))
    # The output's columns follow their heads; its bias is the mean.
    output = _pick_rows([array(layer.output.weight).T for layer in layers], rows).T
    fill(attention.dense, output, np.mean([array(layer.output.bias) for layer in layers], axis=0))


def _pick_rows(arrays: Sequence[Array], rows: np.ndarray) -> Array:
    """Return row i of the array `rows[i]`, for each i."""
    return np.stack(arrays)[rows, np.arange(len(rows))]


def _take_neurons(block: Any, group: Sequence[Repeat], text: _Text) -> None:
    """Take the neurons that contribute most to the residual stream, equally many from each layer; avoid those already taken from an earlier
    one."""
    layers = [layer_parts(text.teacher, each.last) for each in group]
    reads = [layer.up for layer in layers]
    earlier: set[bytes] = set()
    kept = []
    for each, read, count in zip(group, reads, _shares(block.ffn.out_features, len(group)), strict=True):
        # Neurons with equal weights are equal. Choose those not taken before first, then by energy.
        neurons = [row.tobytes() for row in np.column_stack([array(read.weight), array(read.bias)])]
        is_taken = np.array([neuron in earlier for neuron in neurons])
        chosen = np.sort(np.lexsort((-text.energies["ffn", each.last], is_taken))[:count])
        kept.append(chosen)
        earlier.update(neurons[row] for row in chosen)
    weight, bias = (
        np.concatenate([array(getattr(read, kind))[rows] for read, rows in zip(reads, kept, strict=True)])
        for kind in ("weight", "bias")
    )
    fill(block.ffn, weight, bias)
    writes = [array(layer.down.weight)[:, rows] for layer, rows in zip(layers, kept, strict=True)]
    constant = np.mean([array(layer.down.bias) for layer in layers], axis=0)
    fill(block.ffn_output, np.concatenate(writes, axis=1), constant)


def _shares(count: int, parts: int) -> list[int]:
    """Return `count` divided among `parts` as evenly as possible."""
    return [(part + 1) * count // parts - part * count // parts for part in range(parts)]
