"""Time a matrix product with a stored weight in each form, one thread, interleaved: fp32, and U8 activations with S8 or U8 weights.

    python benchmarks/products.py --size 384x384 --size 384x1536 --size 1536x384

Each graph has sixteen products; the int8 ones compute the quantization range at every run, as `method: dynamic` does. U8
weights are the S8 ones plus 128, with zero point 128. Prints a Markdown table of medians: microseconds per product, and the
speedup over fp32.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper, numpy_helper
from records import add_json, code_line, write_json

from compress.results import Machine
from compress.sessions.opening import session_options

FORMS = ("fp32", "U8 x S8", "U8 x U8")
TOKENS = (32, 128, 4096)
PRODUCTS, ROUNDS = 16, 15


def graph(form: str, rows: int, columns: int) -> bytes:
    """Return a serialized model: x [tokens, rows] times a weight [rows, columns], sixteen times."""
    rng = np.random.default_rng(0)
    signed = rng.integers(-63, 64, (rows, columns)).astype(np.int8)
    weight = {
        "fp32": signed.astype(np.float32),
        "U8 x S8": signed,
        "U8 x U8": (signed.astype(np.int16) + 128).astype(np.uint8),
    }[form]
    nodes, outputs, stored = [], [], [numpy_helper.from_array(weight, "weight")]
    if form != "fp32":
        zero = np.array(0, np.int8) if weight.dtype == np.int8 else np.array(128, np.uint8)
        stored.append(numpy_helper.from_array(zero, "weight_zero"))
    for number in range(PRODUCTS):
        moved, product = f"moved{number}", f"y{number}"
        stored.append(numpy_helper.from_array(np.array(number, np.float32), f"shift{number}"))
        nodes.append(helper.make_node("Add", ["x", f"shift{number}"], [moved]))
        if form == "fp32":
            nodes.append(helper.make_node("MatMul", [moved, "weight"], [product]))
        else:
            levels = [f"{moved}_levels", f"{moved}_scale", f"{moved}_zero"]
            nodes.append(helper.make_node("DynamicQuantizeLinear", [moved], levels))
            inputs = [levels[0], "weight", levels[2], "weight_zero"]
            nodes.append(helper.make_node("MatMulInteger", inputs, [f"{product}_sum"]))
            nodes.append(helper.make_node("Cast", [f"{product}_sum"], [f"{product}_cast"], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("Mul", [f"{product}_cast", levels[1]], [product]))
        nodes.append(helper.make_node("ReduceMax", [product], [f"max{number}"], keepdims=0))
        outputs.append(f"max{number}")
    nodes.append(helper.make_node("Sum", outputs, ["y"]))
    graph_proto = helper.make_graph(
        nodes,
        form,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["tokens", rows])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
        stored,
    )
    model = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    checker.check_model(model)
    return model.SerializeToString()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", help="INxOUT; default: 384x384, 384x1536, 1536x384")
    add_json(parser)
    arguments = parser.parse_args()
    sizes = [tuple(map(int, size.split("x"))) for size in arguments.size or ()]
    measured = []
    machine = Machine.here()
    print(
        f"CPU: {machine.cpu}, {', '.join(machine.isa)}; ONNX Runtime {onnxruntime.__version__}; 1 thread\n\n{code_line()}\n"
    )
    print(f"| product | {' | '.join(f'{form}, µs' for form in FORMS)} |\n|-|{'-:|' * len(FORMS)}")
    for rows, columns in sizes or ((384, 384), (384, 1536), (1536, 384)):
        sessions = {
            form: onnxruntime.InferenceSession(graph(form, rows, columns), session_options(1)) for form in FORMS
        }
        for tokens in TOKENS:
            x = np.random.default_rng(1).standard_normal((tokens, rows)).astype(np.float32)
            taken: dict[str, list[float]] = {form: [] for form in FORMS}
            for turn in range(ROUNDS + 1):
                for form in FORMS:
                    started = time.thread_time()
                    sessions[form].run(None, {"x": x})
                    if turn:
                        taken[form].append((time.thread_time() - started) / PRODUCTS * 1e6)
            measured.append({"tokens": tokens, "in": rows, "out": columns, "microseconds": taken})
            medians = {form: statistics.median(taken[form]) for form in FORMS}
            cells = [f"{medians[form]:.0f} ({medians['fp32'] / medians[form]:.2f}×)" for form in FORMS]
            print(f"| {tokens} × {rows} by {rows} × {columns} | {' | '.join(cells)} |", flush=True)
    write_json(arguments.json, measured)


if __name__ == "__main__":
    main()
