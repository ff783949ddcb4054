"""Static quantization of a checkpoint by neural-compressor -> int8 ONNX, with the same checks as for our own methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ..errors import CheckFailed
from ..graphs.model_files import get_metadata, write_model
from ..runtime.folder import unpadded_beside
from ..sessions.opening import open_session
from ..sessions.outputs import run_logits
from .checking import check_file, counts, describe, why_fp32
from .evaluator import measure_file
from .inc_tuning import Program, Trial, Tuning
from .quantizer import Int8Job
from .sampling import Feed

_OPSET = 20  # per-channel and per-tensor DequantizeLinear, and Gelu in one node
# Both sides have the same quantized values, but a sum that rounds differently can change one, which changes others further on. On a
# six-layer model's three-layer student they differ half as much as the program from fp32 on 127 texts, and 1.2 times as
# much on a single one. The check is coarse: it refuses a scale eight times too large, but misses errors below int8's own.
_NEAR, _ROUNDING = 2.0, 1e-3  # relative to the program's mean distance from fp32; to the largest logit


def write_inc(job: Int8Job) -> dict[str, Any]:
    """Write the file of `job` in QuantizeLinear, DequantizeLinear and plain matmuls.

    Check it as `quantize_onnx` does, and that it computes what neural-compressor's program does. `job.source` provides the
    metadata and the reference answers. At first all matmuls except the head's and those that `exclude` names are int8; then
    more and more feed-forward matmuls are fp32, until at most `max_drop` points are lost on the tuning split. If no
    candidate achieves that, the best is taken and `goal_met` is false. CompressError: no texts, or an `exclude` that matches
    nothing. CheckFailed: as `quantize_onnx`.
    """
    evaluator = job.required_evaluator()
    if job.read_program is None:
        raise RuntimeError("neural-compressor quantizes a checkpoint, and none was given")
    inputs = [value.name for value in open_session(job.source).get_inputs()]
    program = job.read_program(inputs, _OPSET)
    with program.quiet():  # the loop prints every step
        return _write(job, program, Tuning(job.source, job.spec, program, job.feeds, evaluator))


def _write(job: Int8Job, program: Program, tuning: Tuning) -> dict[str, Any]:
    unpadded_beside(job.path).unlink(missing_ok=True)  # of an earlier file
    trial = tuning.best()
    _check_program(trial, program, max(job.feeds, key=lambda feed: len(feed["input_ids"])))
    model = trial.model
    info = {
        "int8_format": job.int8_format,
        **counts(model, trial.plan),
        "stayed_fp32": why_fp32(tuning.plain, trial.plan, job.spec.exclude),
        **tuning.info(trial),
    }
    describe(model, get_metadata(onnx.load(job.source, load_external_data=False)), job.described())
    try:
        write_model(model, job.path)
        return info | check_file(job.path, job.source)
    except BaseException:
        job.path.unlink(missing_ok=True)
        raise


def _check_program(trial: Trial, program: Program, feed: Feed) -> None:
    """Compare the graph's logits with the program's. Both multiply in fp32 between the roundings, so no CPU's saturation
    plays a part."""
    import onnxruntime
    import torch

    def disable_optimizations(options: onnxruntime.SessionOptions) -> None:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL

    inputs = [torch.from_numpy(feed[name]) for name in program.inputs]
    with torch.no_grad():
        fp32, expected = (program.logits(module, inputs).numpy() for module in (program.module, trial.module))

    def answer(path: Path) -> np.ndarray:
        session = open_session(path, configure=disable_optimizations)
        return run_logits(session, feed)

    actual = measure_file(trial.folded, answer)
    error, noise = (float(np.abs(other - expected).mean()) for other in (actual, fp32))
    allowed = _NEAR * noise + _ROUNDING * max(1.0, float(np.abs(fp32).max()))
    if not error <= allowed:  # written so that NaN fails
        raise CheckFailed(
            f"quantize: inc-static: the ONNX graph's logits are {error:.2g} from those of neural-compressor's program on average, "
            f"expected at most {allowed:.2g}; nothing is kept"
        )
