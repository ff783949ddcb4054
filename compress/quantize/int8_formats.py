"""How a matmul becomes int8: one function a int8_format, from (rewrite, matmul, bias, range of its input)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from .ranges import Range
from .rewriting import Rewrite

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Matmul:
    """A matmul by a stored weight, and the Add of its bias where one follows: `node`'s or `add`'s output is what it gives."""

    node: NodeProto
    add: NodeProto | None
    bias: str

    @property
    def output(self) -> str:
        return self.node.output[0] if self.add is None else self.add.output[0]


def dynamic(rewrite: Rewrite, matmul: Matmul, span: Range | None) -> None:
    """Levels from the tensor's own range at every run, found once for all matmuls that read it. Standard ONNX
    operators, which ONNX Runtime fuses into one, bias included."""
    node = matmul.node
    levels, scale, zero = _measured(rewrite, node.input[0])
    weight, weight_scale = rewrite.int8(node.input[1])
    stem = node.output[0]
    rewrite.add("MatMulInteger", [levels, weight, zero], [f"{stem}_int32"], f"{node.name}_quant")
    rewrite.add("Cast", [f"{stem}_int32"], [f"{stem}_cast"], f"{node.name}_cast", to=TensorProto.FLOAT)
    rewrite.add("Mul", [scale, weight_scale], [f"{stem}_product_scale"], f"{node.name}_scale")
    rewrite.add("Mul", [f"{stem}_cast", f"{stem}_product_scale"], [stem], f"{node.name}_restore")
    if matmul.add is not None:
        rewrite.keep(matmul.add)


def static(rewrite: Rewrite, matmul: Matmul, span: Range | None) -> None:
    """Levels from the calibrated range. The matmul is ONNX Runtime's own operator, since the fusion that gives it
    takes a constant scale for another pattern and leaves the bias out."""
    node = matmul.node
    levels, scale, zero = _calibrated(rewrite, node.input[0], span)
    weight, weight_scale = rewrite.int8(node.input[1])
    inputs = [levels, weight, scale, weight_scale, zero, "", matmul.bias]
    name = f"{node.name}_quant"
    rewrite.add("MatMulIntegerToFloat", inputs, [matmul.output], name, domain=MICROSOFT)


def portable(rewrite: Rewrite, matmul: Matmul, span: Range | None) -> None:
    """QuantizeLinear and DequantizeLinear around a plain matmul, which a runtime with int8 kernels takes together."""
    node = matmul.node
    levels, scale, zero = _calibrated(rewrite, node.input[0], span)
    source = node.input[0]
    rewrite.once("DequantizeLinear", [levels, scale, zero], [f"{source}_restored"], f"{source}/DequantizeLinear")
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


def _measured(rewrite: Rewrite, source: str) -> tuple[str, str, str]:
    names = (f"{source}_measured", f"{source}_measured_scale", f"{source}_measured_zero_point")
    rewrite.once("DynamicQuantizeLinear", [source], list(names), f"{source}/DynamicQuantizeLinear")
    return names


def _calibrated(rewrite: Rewrite, source: str, span: Range | None) -> tuple[str, str, str]:
    if span is None:
        raise RuntimeError(f"{source}: no range was calibrated")
    names = (f"{source}_quantized", f"{source}_scale", f"{source}_zero")
    for name, value in zip(names[1:], span.parameters(), strict=True):
        rewrite.constant(name, value)
    rewrite.once("QuantizeLinear", [source, *names[1:]], [names[0]], f"{source}/QuantizeLinear")
    return names
