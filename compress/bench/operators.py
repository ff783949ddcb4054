"""Time that an ONNX model spends in each node, from ONNX Runtime's own profiler."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompressError
from .floor import attention_macs, fused_attention_macs, matmul_macs

if TYPE_CHECKING:
    import onnx

RUNS, WARMUP, MIN_RUNS, SECONDS = 20, 3, 3, 10.0
_KERNEL = "_kernel_time"

# The groups of operators.
INT8, FP32, ATTENTION, REST = "int8 matmuls", "fp32 matmuls", "attention", "rest"


@dataclass(frozen=True)
class Operator:
    """One node of the graph as optimized by ONNX Runtime. `op`: its operator type; `group`: one of the four above; `macs`: precision ->
    multiply-accumulates of its matmuls."""

    name: str
    op: str
    group: str
    milliseconds: float
    macs: dict[str, int] = field(default_factory=dict)


def operators(path: Path, rows: Sequence[int]) -> tuple[int, list[Operator]]:
    """Profile a batch of texts of `rows` tokens on one thread; return (number of runs, executed nodes with the least time of each).

    The least, because the profiler measures wall-clock time, which includes waiting for the core. CompressError: the model cannot run
    the batch, or has a matmul whose multiply-accumulates cannot be counted.
    """
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        events = _events(path, rows, Path(folder))
        graph = onnx.load(Path(folder) / "rewritten.onnx", load_external_data=False).graph
    return len(events), _operators(path, graph, events)


def _events(path: Path, rows: Sequence[int], folder: Path) -> list[list[dict[str, Any]]]:
    """Return the node events of each run; the optimized graph is written to `folder`/rewritten.onnx."""
    from ..sessions.opening import open_session
    from .runners import feed

    def configure(options: Any) -> None:
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / "profile")
        options.optimized_model_filepath = str(folder / "rewritten.onnx")

    session = open_session(path, 1, configure=configure)
    known = session.get_modelmeta().custom_metadata_map
    batch = feed(path, [value.name for value in session.get_inputs()], known, rows)
    start, done = time.monotonic(), 0
    while done < WARMUP + MIN_RUNS or (done < WARMUP + RUNS and time.monotonic() - start < SECONDS):
        session.run(None, batch)
        done += 1
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    runs = sorted((event["ts"], event["ts"] + event["dur"]) for event in events if event["name"] == "model_run")
    nodes = [event for event in events if event["cat"] == "Node" and event["name"].endswith(_KERNEL)]
    return [[event for event in nodes if begin <= event["ts"] <= end] for begin, end in runs[WARMUP:]]


def _operators(path: Path, graph: onnx.GraphProto, runs: list[list[dict[str, Any]]]) -> list[Operator]:
    groups, known = _groups(graph), {node.name: node for node in graph.node}
    times: dict[tuple[str, str], list[int]] = {}
    for event in (event for events in runs for event in events):
        times.setdefault(_key(event), []).append(event["dur"])
    nodes = []
    for event in runs[-1]:
        name, op = event["name"].removesuffix(_KERNEL), event["args"]["op_name"]
        macs = _macs(path, known.get(name), op, event["args"])
        nodes.append(Operator(name, op, groups.get(name, REST), min(times[_key(event)]) / 1000, macs))
    return nodes


def _key(event: dict[str, Any]) -> tuple[str, str]:
    return event["name"], event["args"]["node_index"]


def _groups(graph: onnx.GraphProto) -> dict[str, str]:
    """Return node -> group: matmuls with a weight are int8 or fp32; those of two activations, and softmax, are attention."""
    from ..graphs.matmuls import matmuls

    matmul_names = matmuls(graph)
    groups = {node.name: ATTENTION for node in graph.node if "Attention" in node.op_type or node.op_type == "Softmax"}
    groups |= dict.fromkeys(matmul_names.activation, ATTENTION)
    return (
        groups | dict.fromkeys(matmul_names.int8, INT8) | dict.fromkeys(matmul_names.fp32 + matmul_names.stacked, FP32)
    )


def _macs(path: Path, node: onnx.NodeProto | None, op: str, event: dict[str, Any]) -> dict[str, int]:
    """Return precision -> multiply-accumulates. An event has the shapes of activations, but may lack those of weights."""
    from ..graphs.matmuls import FLOAT_MATMULS, INTEGER_MATMULS

    shapes, outs = ([next(iter(shape.values())) for shape in event[f"{end}_type_shape"]] for end in ("input", "output"))
    if not any(word in op for word in ("MatMul", "Gemm", "Attention", "Conv")):
        return {}
    if node is None:
        raise CompressError(f"{path}: a {op} has no name of its own, so its time cannot be told; leave --profile out")
    if op in INTEGER_MATMULS | FLOAT_MATMULS:
        return {"int8" if op in INTEGER_MATMULS else "fp32": matmul_macs(shapes[0], outs[0])}
    fused = node.domain == "com.microsoft" and not any(one.name == "qkv_hidden_sizes" for one in node.attribute)
    if op == "MultiHeadAttention" or (op == "Attention" and not node.domain):
        return {"fp32": attention_macs(shapes[0], shapes[1], outs[0])}
    if op in ("Attention", "QAttention") and fused:
        projected, attended = fused_attention_macs(shapes[0], outs[0])
        return {"fp32": projected + attended} if op == "Attention" else {"int8": projected, "fp32": attended}
    raise CompressError(f"{path}: the multiply-accumulates of a {op} cannot be counted here; leave --profile out")
