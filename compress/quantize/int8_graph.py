"""fp32 graph -> int8 graph, each matmul in its requested int8 format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from .node_selection import QuantizationPlan, weights_alone, word_look_ups
from .ranges import Range
from .rewriting import Rewrite


def to_int8_graph(
    model: ModelProto,
    plan: QuantizationPlan,
    int8_formats: Mapping[str, str],
    *,
    ranges: Mapping[str, Range] | None = None,
    corrections: Mapping[str, np.ndarray] | None = None,
    per_channel: bool = True,
    reduce_range: bool = False,
    word_bits: int = 8,
) -> ModelProto:
    """Return a copy of `model` with the matmuls of `plan` as int8. By matmul name: its int8 format, the fixed range of its
    input, if any, and the correction to add to its bias. `word_bits`: of the word table, 4 or 8."""
    model = deepcopy(model)
    rewrite = Rewrite(model, per_channel=per_channel, reduce_range=reduce_range)
    alone, adds = weights_alone(model, plan), biases(model.graph)
    fused = {adds[name].name for name in plan.int8 if name in adds}
    int8, tables, kept = set(plan.int8), set(plan.tables), set(plan.kept)
    words = set(word_look_ups(model, plan)) if word_bits == 4 else ()
    for node in list(model.graph.node):
        # `checking.counts` detects a matmul that is missed here.
        if node.name in int8 and node.op_type == "MatMul" and rewrite.is_matrix(node.input[1]):
            add = adds.get(node.name)
            matmul = Matmul(node, add, _bias(node, add))
            if corrections and add is not None and int8_formats[node.name] != "dynamic":
                matmul = _correct_bias(rewrite, node, add, corrections[node.name])
            FORMATS[int8_formats[node.name]](rewrite, matmul, (ranges or {}).get(node.name))
        elif node.name in words:
            rewrite.look_up_words(node)
        elif node.name in tables:
            rewrite.look_up(node)
        elif node.name not in fused:
            if node.name not in kept:
                node.input[:] = [rewrite.dequantized(name) if name in alone else name for name in node.input]
            rewrite.keep(node)
    if any(node.domain == MICROSOFT for node in rewrite.finish().graph.node):
        model.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return model


def _correct_bias(rewrite: Rewrite, node: NodeProto, add: NodeProto, correction: np.ndarray) -> Matmul:
    """Return the matmul with its own bias: matmuls that share a bias, as in ALBERT, have different errors."""
    bias = numpy_helper.to_array(rewrite.stored[_bias(node, add)])
    name = rewrite.constant(f"{node.name}/bias", (bias + correction).astype(np.float32))
    own = NodeProto()
    own.CopyFrom(add)
    own.input[:] = [node.output[0], name]
    return Matmul(node, own, name)


def biases(graph: GraphProto) -> dict[str, NodeProto]:
    """Map each matmul to the Add of a stored vector, if that is the only reader of its output."""
    vectors = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 1}
    readers = Counter(name for node in graph.node for name in node.input)
    makers = {node.output[0]: node for node in graph.node if node.op_type == "MatMul"}
    adds: dict[str, NodeProto] = {}
    for node in graph.node:
        if node.op_type == "Add" and any(name in vectors for name in node.input):
            matmul = next((makers[name] for name in node.input if name in makers), None)
            if matmul is not None and readers[matmul.output[0]] == 1:
                adds[matmul.name] = node
    return adds


def _bias(matmul: NodeProto, add: NodeProto | None) -> str:
    return "" if add is None else next(name for name in add.input if name != matmul.output[0])


MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Matmul:
    """A matmul by a stored weight, and the Add of its bias if one follows; `output` is that of the last node."""

    node: NodeProto
    add: NodeProto | None
    bias: str

    @property
    def output(self) -> str:
        return self.node.output[0] if self.add is None else self.add.output[0]


def dynamic(rewrite: Rewrite, matmul: Matmul, span: Range | None) -> None:
    """Quantize with the input's range at every run, computed once for all matmuls that read it. Uses standard ONNX
    operators, which ONNX Runtime fuses into one, bias included."""
    node = matmul.node
    quantized, scale, zero = _dynamic_input(rewrite, node.input[0])
    weight, weight_scale = rewrite.int8(node.input[1])
    stem = node.output[0]
    rewrite.add("MatMulInteger", [quantized, weight, zero], [f"{stem}_int32"], f"{node.name}_quant")
    rewrite.add("Cast", [f"{stem}_int32"], [f"{stem}_cast"], f"{node.name}_cast", to=TensorProto.FLOAT)
    rewrite.add("Mul", [scale, weight_scale], [f"{stem}_product_scale"], f"{node.name}_scale")
    rewrite.add("Mul", [f"{stem}_cast", f"{stem}_product_scale"], [stem], f"{node.name}_restore")
    if matmul.add is not None:
        rewrite.keep(matmul.add)


def static(rewrite: Rewrite, matmul: Matmul, span: Range | None) -> None:
    """Quantize with the calibrated range. The matmul is ONNX Runtime's own operator, because the fusion that would produce
    it mistakes a constant scale for another pattern and leaves the bias out."""
    node = matmul.node
    quantized, scale, zero = _static_input(rewrite, node.input[0], span)
    weight, weight_scale = rewrite.int8(node.input[1])
    inputs = [quantized, weight, scale, weight_scale, zero, "", matmul.bias]
    name = f"{node.name}_quant"
    rewrite.add("MatMulIntegerToFloat", inputs, [matmul.output], name, domain=MICROSOFT)


def portable(rewrite: Rewrite, matmul: Matmul, span: Range | None) -> None:
    """Put QuantizeLinear and DequantizeLinear around a plain matmul; runtimes with int8 kernels fuse the three."""
    node = matmul.node
    quantized, scale, zero = _static_input(rewrite, node.input[0], span)
    source = node.input[0]
    rewrite.once("DequantizeLinear", [quantized, scale, zero], [f"{source}_restored"], f"{source}/DequantizeLinear")
    names = rewrite.int8(node.input[1])
    weight = f"{node.input[1]}_restored"
    rewrite.once("DequantizeLinear", list(names), [weight], f"{node.input[1]}/DequantizeLinear", axis=rewrite.axis)
    rewrite.add("MatMul", [f"{source}_restored", weight], [node.output[0]], node.name)
    if matmul.add is not None:
        rewrite.keep(matmul.add)


FORMATS: dict[str, Callable[[Rewrite, Matmul, Range | None], None]] = {
    "dynamic": dynamic,
    "static": static,
    "qdq": portable,
}


def _dynamic_input(rewrite: Rewrite, source: str) -> tuple[str, str, str]:
    names = (f"{source}_measured", f"{source}_measured_scale", f"{source}_measured_zero_point")
    rewrite.once("DynamicQuantizeLinear", [source], list(names), f"{source}/DynamicQuantizeLinear")
    return names


def _static_input(rewrite: Rewrite, source: str, span: Range | None) -> tuple[str, str, str]:
    if span is None:
        raise RuntimeError(f"{source}: no range was calibrated")
    names = (f"{source}_quantized", f"{source}_scale", f"{source}_zero")
    for name, value in zip(names[1:], span.parameters(), strict=True):
        rewrite.constant(name, value)
    rewrite.once("QuantizeLinear", [source, *names[1:]], [names[0]], f"{source}/QuantizeLinear")
    return names
