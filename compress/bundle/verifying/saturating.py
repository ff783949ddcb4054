"""How this CPU's int8 kernels run a bundle, and how those of another kind would: integer matmuls, 16-bit saturation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx

from ... import machine
from ...errors import CheckFailed
from ...quantize.simulation import Layer, count_saturated, simulate
from ...runtime.batches import pad_batch
from ...runtime.engine import KNOWN_INPUTS
from ...runtime.folder import MODEL_FILES, read_settings
from ...sessions.opening import open_session
from ..document import BundleInfo
from ..probes import ProbeRows, probe_rows
from ..tolerance import distance, recorded_outputs


def integer_kernels(path: Path) -> str:
    """Check the file as ONNX Runtime rewrites it here. CheckFailed: a matmul that is int8 in the file is computed in fp32."""
    from ...graphs.matmuls import INTEGER_MATMULS, matmuls

    def configure(options: object) -> None:
        options.optimized_model_filepath = str(rewritten)  # type: ignore[attr-defined]

    with tempfile.TemporaryDirectory() as folder:
        rewritten = Path(folder) / "rewritten.onnx"
        open_session(path, threads=1, configure=configure)
        nodes = onnx.load(rewritten, load_external_data=False).graph.node
    here = sum(node.op_type in INTEGER_MATMULS for node in nodes)  # what is still QDQ here runs in fp32
    there = len(matmuls(onnx.load(path, load_external_data=False).graph).int8)
    if here < there:
        raise CheckFailed(
            f"{there - here} of {there} int8 matmuls are computed in fp32: this ONNX Runtime has no int8 kernel for "
            "them here, so answers differ a little and nothing is faster; use another version, or the fp32 file"
        )
    return f"all {there} int8 matmuls are computed in integers"


def saturation(folder: Path, info: BundleInfo, precision: str) -> str:
    """Report how many sums of two products exceed 16 bits on the probe, where most do, and what that means on this CPU."""
    layers = count_saturated(_model(folder, precision), _feeds(folder, probe_rows(folder, info.probe.texts)))
    pairs, saturated = sum(layer.pairs for layer in layers), sum(layer.saturated for layer in layers)
    if not saturated:
        return f"none of {pairs:,} pair sums exceeds 16 bits: x86 CPUs with and without VNNI compute the same"
    counted = f"{saturated:,} of {pairs:,} pair sums exceed 16 bits ({_worst_layer(layers)})"
    if not machine.saturates():
        return f"{counted}; they are exact on this CPU, and saturate on x86 CPUs without VNNI"
    there = ", ".join(info.measured_on.isa) or "no vector extension that matters"
    return f"{counted} and saturate on this CPU, which has no VNNI; the scores were measured on one with {there}"


def _worst_layer(layers: Iterable[Layer]) -> str:
    worst = max(layers, key=lambda layer: layer.saturated / max(1, layer.pairs))
    return f"most in {worst.name}, {100 * worst.saturated / worst.pairs:.2g}%"


def compare_with_other_cpu(folder: Path, info: BundleInfo, precision: str, outputs: np.ndarray) -> str:
    """Compare the answers to the probe on an x86 CPU of the other kind with `outputs`, this one's. CheckFailed: too far from it."""
    other = "without VNNI" if not machine.saturates() else "with VNNI"
    logits = _simulated_logits(folder, info, precision, saturating=not machine.saturates())
    detail, near = distance(info, precision, logits, outputs)
    if not near:
        raise CheckFailed(f"{detail}; a CPU {other} answers differently from this one")
    return f"{detail}, between this CPU and one {other}"


def explanation(folder: Path, info: BundleInfo, precision: str, outputs: np.ndarray) -> str:
    """Report whether 16-bit saturation is why `outputs` differ from the bundle's record, by computing the file both ways."""
    try:
        exact, clipped = (_simulated_logits(folder, info, precision, saturating=one) for one in (False, True))
    except Exception as error:  # the evaluator runs an arbitrary graph, and may raise anything
        return f"whether saturation is the cause cannot be told: {' '.join(str(error).split())}"

    def near(first: np.ndarray, second: np.ndarray) -> bool:
        return distance(info, precision, first, second)[1]

    there = recorded_outputs(info, precision)
    if near(exact, there) and near(clipped, outputs):
        ways = [f"use onnx/{MODEL_FILES[name]} on this CPU" for name in ("avx2", "fp32") if name in info.models]
        ways.append("this CPU needs another file: ship the run again with --precision fp32, or avx2 where it has one")
        cause = "16-bit saturation is the cause: summed exactly, as CPUs with VNNI do, the file answers as recorded"
        return f"{cause}; {ways[0]}"
    if near(clipped, there) and near(exact, outputs):
        return "16-bit saturation is the cause: the record is that of a CPU without VNNI, and this one sums exactly"
    return "16-bit saturation does not explain it"


def _simulated_logits(folder: Path, info: BundleInfo, precision: str, *, saturating: bool) -> np.ndarray:
    """Return the probe's float32 logits in the form of its record, one text or window at a time."""
    rows = probe_rows(folder, info.probe.texts)
    outputs = simulate(_model(folder, precision), _feeds(folder, rows), saturating=saturating)
    return rows.collected([logits for (logits,) in outputs])


def _model(folder: Path, precision: str) -> Path:
    return folder / "onnx" / MODEL_FILES[precision]


def _feeds(folder: Path, rows: ProbeRows) -> list[dict[str, np.ndarray]]:
    """Return one batch for each row, so that none is padded."""
    inputs: dict[str, type] = dict.fromkeys(KNOWN_INPUTS, np.int64)
    pad = read_settings(folder).pad_id
    return [pad_batch([encoding], inputs, pad) for encoding in rows.encodings]
