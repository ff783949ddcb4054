"""Fold the smoothing of attention's context into the value projection, and that of a ReLU's output into the matmul before
it.

The context is P (X V + b) for each head. Each of its channels comes from one column of V and one entry of b, so dividing it
by s gives P (X V / s + b / s): no multiplication is left at run time. If each column of V has its own scale in int8, that
scale absorbs 1 / s, and the int8 values do not change. Likewise relu(X V + b) / s is relu(X V / s + b / s), for s > 0.

For example, take one head of two channels, whose second has far larger values, and two tokens, with the states X = 2 and 4,
whose attention weights are all 1/2. `tests/quantize/test_value_folding_example.py` computes this example.

                            as it is             with s = [1 10]
    V                       [1 10]               V / s = [1 1]
    b                       [0 20]               b / s = [0 2]
    values X V + b          [2 40] and [4 60]    [2 4] and [4 6]
    context, their mean     [3 50]               [3 5]
    output matrix           [2 1], a column      times s: [2 10]
    output                  2*3 + 1*50 = 56      2*3 + 10*5 = 56

The output is the same, and the context's channels are now of similar size, so one int8 scale serves both. Both columns of V
are 127 in int8 before and after; their scales were 1/127 and 10/127, and are both 1/127.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from ..graphs.rewriting import attributes

Array = np.ndarray

DIVIDED = "_divided"  # suffix of a matmul output that differs from that of the fp32 graph


def fold_into_values(graph: GraphProto, factors: Mapping[str, Array]) -> set[str]:
    """Divide attention's values, and the input of a ReLU, by the factors [channel] of the matmuls that read the result. In
    place. Return the names of those matmuls of `factors`; the others read neither, or something with another reader."""
    view = _View.of(graph)
    folded: set[str] = set()
    for paths, scale in _foldable(view, graph, factors):
        _divide(graph, view, paths, scale)
        folded.update(path.matmul for path in paths)
    return folded


def divided_values(graph: GraphProto, factors: Mapping[str, Array]) -> dict[str, Array]:
    """Map each matmul whose output `fold_into_values` would divide to its divisors [out]."""
    view = _View.of(graph)
    return {
        node.name: scale
        for paths, scale in _foldable(view, graph, factors)
        for path in paths
        for node in path.nodes
        if node.op_type == "MatMul" and node.input[1] == path.weight
    }


def _foldable(view: _View, graph: GraphProto, factors: Mapping[str, Array]) -> list[tuple[list[_Path], Array]]:
    """Return the paths from each weight of values, with the divisors of its columns."""
    by_weight: dict[str, list[_Path]] = defaultdict(list)
    for node in graph.node:
        if node.name in factors and (path := _path(view, node)) is not None:
            by_weight[path.weight].append(path)
    scales = [(paths, _scale(view, paths, factors)) for paths in by_weight.values()]
    return [(paths, scale) for paths, scale in scales if scale is not None]


@dataclass(frozen=True)
class _View:
    """A graph's stored tensors, the node that makes each tensor, and the nodes that read it: None for an output of the graph."""

    stored: Mapping[str, TensorProto]
    makers: Mapping[str, NodeProto]
    readers: Mapping[str, Sequence[NodeProto | None]]

    @classmethod
    def of(cls, graph: GraphProto) -> _View:
        readers: dict[str, list[NodeProto | None]] = defaultdict(list)
        for node in graph.node:
            for name in dict.fromkeys(node.input):
                readers[name].append(node)
        for value in graph.output:
            readers[value.name].append(None)
        makers = {name: node for node in graph.node for name in node.output}
        return cls({tensor.name: tensor for tensor in graph.initializer}, makers, readers)

    def value(self, name: str) -> Array:
        return numpy_helper.to_array(self.stored[name])

    def shape(self, name: str) -> list[int] | None:
        """Return the target shape of a Reshape; a size known only at run time, of a batch or a length, is 1."""
        if name in self.stored:
            return self.value(name).tolist()
        maker = self.makers.get(name)
        if maker is None or maker.op_type != "Concat":
            return None
        return [size for part in maker.input for size in (self.value(part).tolist() if part in self.stored else [1])]


@dataclass(frozen=True)
class _Path:
    """A path from the stored `weight` [in, out] of the values through `nodes`, in order, to the input of `matmul`.
    `columns`: for each tensor on it, the columns of the weight that its entries come from."""

    weight: str
    nodes: tuple[NodeProto, ...]
    matmul: str
    columns: Mapping[str, Array]

    @property
    def end(self) -> str:
        return self.nodes[-1].output[0]


def _path(view: _View, matmul: NodeProto) -> _Path | None:
    """Follow the input of `matmul` back to a weight; None if that passes an operator other than those of attention and a
    ReLU, or neither of these."""
    nodes: list[NodeProto] = []
    tensor, folds = matmul.input[0], False
    while tensor not in view.stored:
        node = view.makers.get(tensor)
        if node is None or node.op_type not in _FOLLOW:
            return None
        nodes.append(node)
        moving = [name for name in node.input if name not in view.stored]
        folds |= node.op_type in ("Attention", "Relu") or (node.op_type == "MatMul" and len(moving) == 2)
        tensor = moving[0] if node.op_type == "Add" else node.input[_VALUES.get(node.op_type, 0)]
    if not folds or len(view.stored[tensor].dims) != 2:
        return None
    nodes.reverse()
    current_columns = np.arange(view.stored[tensor].dims[1])[None]
    columns = {tensor: current_columns}
    for node in nodes:
        try:
            followed = _FOLLOW[node.op_type](view, node, current_columns)
        except ValueError:  # a size known only at run time is neither a batch nor a length
            return None
        if followed is None:
            return None
        columns[node.output[0]] = current_columns = followed
    return _Path(tensor, tuple(nodes), matmul.name, columns)


def _scale(view: _View, paths: Sequence[_Path], factors: Mapping[str, Array]) -> Array | None:
    """Return the divisor of each column of the paths' weight, [out]; None if a column would have several, or if another node
    reads the values."""
    scales = []
    for path in paths:
        scale = np.ones(view.stored[path.weight].dims[1], np.float32)
        scale[path.columns[path.end].ravel()] = factors[path.matmul]
        scales.append(scale)
    same = all((scale == scales[0]).all() for scale in scales)
    return scales[0] if same and _read_by_none_else(view, paths) else None


def _read_by_none_else(view: _View, paths: Sequence[_Path]) -> bool:
    """Whether no other node reads the values, apart from slices of other columns: the queries or keys of one matrix for all
    three."""
    inside = {id(node) for path in paths for node in path.nodes}
    ends = {path.matmul for path in paths}

    def is_spared(node: NodeProto | None, columns: Array, changed: Array) -> bool:
        cut = _through_slice(view, node, columns) if node is not None and node.op_type == "Slice" else None
        return cut is not None and not np.isin(cut, changed).any()

    return all(
        id(node) in inside
        or (node is not None and name == path.end and node.name in ends)
        or is_spared(node, columns, path.columns[path.end])
        for path in paths
        for name, columns in path.columns.items()
        for node in view.readers[name]
    )


def _divide(graph: GraphProto, view: _View, paths: Sequence[_Path], scale: Array) -> None:
    """Divide the weight and the biases. Biases get new names: equal ones of other layers are the same tensor."""
    weight, new_biases = view.stored[paths[0].weight], set[str]()
    for path in paths:
        for node in path.nodes:
            if node.op_type == "Add":
                place = next(place for place, name in enumerate(node.input) if name in view.stored)
                bias = node.input[place]
                node.input[place] = name = f"{bias}/{weight.name}"
                if name not in new_biases:
                    new_biases.add(name)
                    divided = view.value(bias) / scale[path.columns[node.output[0]].ravel()]
                    graph.initializer.append(numpy_helper.from_array(divided, name))
    names = {name: f"{name}{DIVIDED}" for path in paths for node in path.nodes[:-1] for name in _divided_outputs(node)}
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) / scale, weight.name))


def _divided_outputs(node: NodeProto) -> Sequence[str]:
    return node.output if node.op_type in ("MatMul", "Add") else ()


# Each function returns the columns of a node's output, from those of its input, for one text of one token.


def _through_matmul(view: _View, node: NodeProto, columns: Array) -> Array:
    """Multiply by the states, or by the attention weights."""
    return columns[None] if columns.ndim == 2 else columns


def _through_attention(view: _View, node: NodeProto, columns: Array) -> Array | None:
    heads = attributes(node)
    own = heads.get("q_num_heads") == heads.get("kv_num_heads")  # each head has values of its own
    return columns if own and columns.ndim == 3 else None


def _through_add(view: _View, node: NodeProto, columns: Array) -> Array | None:
    bias = [view.stored[name] for name in node.input if name in view.stored]
    return columns if len(bias) == 1 and list(bias[0].dims) == [columns.size] == [columns.shape[-1]] else None


def _through_reshape(view: _View, node: NodeProto, columns: Array) -> Array | None:
    shape = view.shape(node.input[1])
    if shape is None:
        return None
    if not attributes(node).get("allowzero"):
        shape = [size or columns.shape[axis] for axis, size in enumerate(shape)]
    return columns.reshape(shape)


def _through_slice(view: _View, node: NodeProto, columns: Array) -> Array | None:
    if len(node.input) < 4 or any(name not in view.stored for name in node.input[1:]):
        return None
    starts, ends, axes, *steps = (view.value(name).tolist() for name in node.input[1:])
    places = [slice(None)] * columns.ndim
    for axis, start, end, step in zip(axes, starts, ends, *(steps or [[1] * len(axes)]), strict=True):
        places[axis] = slice(start, end, step)
    return columns[tuple(places)]


def _token(view: _View, node: NodeProto, columns: Array) -> Array | None:
    """Take rows [token, channel], or [batch, length, channel], of other tokens."""
    rows = attributes(node).get("axis", 0) == 0 and columns.shape[0] == 1 and columns.ndim == 2
    return columns[None] if rows and node.input[1] not in view.stored else None


def _through_transpose(view: _View, node: NodeProto, columns: Array) -> Array:
    return columns.transpose(attributes(node).get("perm"))


def _through_flatten(view: _View, node: NodeProto, columns: Array) -> Array:
    axis = attributes(node).get("axis", 1)
    return columns.reshape(int(np.prod(columns.shape[:axis])), -1)


def _through_squeeze(view: _View, node: NodeProto, columns: Array) -> Array:
    return columns.squeeze(tuple(view.value(node.input[1]).tolist()))


def _through_unsqueeze(view: _View, node: NodeProto, columns: Array) -> Array:
    return np.expand_dims(columns, tuple(view.value(node.input[1]).tolist()))


_VALUES = {"MatMul": 1, "Attention": 2}
_FOLLOW: Mapping[str, Callable[[_View, NodeProto, Array], Array | None]] = {
    "MatMul": _through_matmul,
    "Attention": _through_attention,
    "Add": _through_add,
    "Relu": lambda view, node, columns: columns,
    "Reshape": _through_reshape,
    "Slice": _through_slice,
    "Gather": _token,
    "Transpose": _through_transpose,
    "Flatten": _through_flatten,
    "Squeeze": _through_squeeze,
    "Unsqueeze": _through_unsqueeze,
}
