"""Rewriting of an ONNX graph: nodes in order, int8 weights stored once, unused fp32 weights dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..graphs.rewriting import drop_unused, replace_all
from .weights import quantize_rows, to_int8
from .word_blocks import quantize_blocks


class Rewrite:
    """A graph being rewritten, with tensors identified by name. `add` appends a node; `finish` puts the nodes into the model."""

    def __init__(self, model: ModelProto, *, per_channel: bool, reduce_range: bool) -> None:
        self.model, self.graph = model, model.graph
        self.stored = {tensor.name: tensor for tensor in model.graph.initializer}
        self.axis, self._bits = (1 if per_channel else None), (7 if reduce_range else 8)
        self._nodes: list[NodeProto] = []
        self._first_outputs: set[str] = set()

    def keep(self, node: NodeProto) -> None:
        self._nodes.append(node)

    def add(self, kind: str, inputs: list[str], outputs: list[str], name: str, **attributes: Any) -> None:
        self._nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))

    def once(self, kind: str, inputs: list[str], outputs: list[str], name: str, **attributes: Any) -> None:
        """`add` a node unless its first output already exists."""
        if outputs[0] not in self._first_outputs:
            self._first_outputs.add(outputs[0])
            self.add(
                kind, inputs, outputs, name, **{key: value for key, value in attributes.items() if value is not None}
            )

    def constant(self, name: str, value: np.ndarray) -> str:
        """Store `value` under `name`, once, and return the name."""
        if name not in self.stored:
            self.graph.initializer.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
            self.stored[name] = self.graph.initializer[-1]
        return name

    def is_matrix(self, name: str) -> bool:
        """Whether `name` is a stored fp32 matrix."""
        tensor = self.stored.get(name)
        return tensor is not None and tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2

    def int8(self, weight: str) -> tuple[str, str]:
        """Return the names of the int8 form and the scale of a stored matmul weight [in, out], or of one [head, in, out]
        whose heads share the scales. The zero point is 0, the default of operators."""
        names = (f"{weight}_quantized", f"{weight}_scale")
        if names[0] not in self.stored:
            array = numpy_helper.to_array(self.stored[weight])
            quantized, scale = to_int8(array, None if self.axis is None else array.ndim - 1, bits=self._bits)
            self.constant(names[0], quantized)
            self.constant(names[1], scale)
        return names

    def dequantized(self, weight: str) -> str:
        """Return the name of the weight dequantized from int8, for a multiplication in fp32; a runtime folds it when it loads
        the file."""
        quantized, scale = self.int8(weight)
        self.once("Cast", [quantized], [f"{weight}_cast"], f"{weight}/Cast", to=TensorProto.FLOAT)
        self.once("Mul", [f"{weight}_cast", scale], [f"{weight}_fp32"], f"{weight}/Mul")
        return f"{weight}_fp32"

    def look_up(self, node: NodeProto) -> None:
        """Replace `node`, the Gather or Slice of a table's rows, by one of int8 rows with a scale each. The scales of a long
        table are coded: otherwise they would weigh more than everything else that is not int8."""
        table, *which = node.input
        if f"{table}_quantized" not in self.stored:
            quantized_rows = quantize_rows(numpy_helper.to_array(self.stored[table]))
            self.constant(f"{table}_quantized", quantized_rows.values)
            self.constant(f"{table}_scale", quantized_rows.scales[:, None])
            for name, value in (("unit", quantized_rows.unit), ("centre", quantized_rows.centre)):
                if value is not None:
                    self.constant(f"{table}_{name}", value)
        rows, scales = f"{node.output[0]}_rows", f"{node.output[0]}_scales"
        self.add(node.op_type, [f"{table}_quantized", *which], [rows], node.name)
        self.add("Cast", [rows], [f"{rows}_cast"], f"{node.name}_cast", to=TensorProto.FLOAT)
        self.add(node.op_type, [f"{table}_scale", *which], [scales], f"{node.name}_scale")
        if f"{table}_unit" in self.stored:
            self.add("Cast", [scales], [f"{scales}_cast"], f"{node.name}_scale_cast", to=TensorProto.FLOAT)
            self.add("Mul", [f"{scales}_cast"] * 2, [f"{scales}_squared"], f"{node.name}_scale_square")
            self.add("Mul", [f"{scales}_squared", f"{table}_unit"], [f"{scales}_whole"], f"{node.name}_scale_unit")
            scales = f"{scales}_whole"
        if f"{table}_centre" not in self.stored:
            self.add("Mul", [f"{rows}_cast", scales], [node.output[0]], f"{node.name}_restore")
            return
        self.add("Mul", [f"{rows}_cast", scales], [f"{rows}_centred"], f"{node.name}_restore")
        self.add("Add", [f"{rows}_centred", f"{table}_centre"], [node.output[0]], f"{node.name}_centre")

    def look_up_words(self, node: NodeProto) -> None:
        """Replace `node`, the Gather of a table's rows by ids [batch, length], by one from a 4-bit table with two values per
        byte. Uses operators that any runtime has: only ONNX Runtime has one for blocks of 4 bits, and no standard one looks
        up their rows."""
        table, which = node.input
        if f"{table}_packed" not in self.stored:
            values = numpy_helper.to_array(self.stored[table])
            blocks = quantize_blocks(values)
            self.constant(f"{table}_packed", blocks.packed)
            self.constant(f"{table}_codes", blocks.codes)
            self.constant(f"{table}_unit", blocks.unit)
            self.constant(f"{table}_shape", np.array([0, 0, values.shape[1]], np.int64))
        stem, name = node.output[0], node.name
        for number in (1 / 16, 8.0, 16.0):
            self.constant(f"float32:{number:g}", np.array(number, np.float32))

        def add(kind: str, inputs: list[str], what: str, **attributes: Any) -> str:
            self.add(kind, inputs, [f"{stem}_{what}"], f"{name}_{what}", **attributes)
            return f"{stem}_{what}"

        self.add("Gather", [f"{table}_packed", which], [f"{stem}_rows"], name)
        rows = add("Cast", [f"{stem}_rows"], "bytes", to=TensorProto.FLOAT)
        upper = add("Floor", [add("Mul", [rows, "float32:0.0625"], "sixteenths")], "upper")
        rest = add("Sub", [rows, add("Mul", [upper, "float32:16"], "upper_part")], "lower_part")
        quantized = add("Concat", [upper, add("Sub", [rest, "float32:8"], "lower")], "levels", axis=-1)
        codes = add("Cast", [add("Gather", [f"{table}_codes", which], "codes")], "signed", to=TensorProto.FLOAT)
        squares = add("Mul", [codes, add("Abs", [codes], "unsigned")], "squares")
        dequantized = add("Mul", [quantized, add("Mul", [squares, f"{table}_unit"], "scales")], "restored")
        self.add("Reshape", [dequantized, f"{table}_shape"], [stem], f"{name}_rows")

    def finish(self) -> ModelProto:
        replace_all(self.graph.node, self._nodes)
        drop_unused(self.graph)
        return self.model
