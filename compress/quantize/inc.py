"""neural-compressor's static quantization of a checkpoint -> int8 ONNX, checked as our own."""

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
from .evaluator import asked
from .inc_tuning import Program, Trial, Tuning
from .quantizer import Int8Job
from .sampling import Feed

_OPSET = 20  # per-channel and per-tensor DequantizeLinear, and Gelu in one node
# Both sides have the same levels, yet a sum that rounds differently tips one, which tips others further on: of 127 texts on
# a six-layer model's three-layer student the two are half as far from each other as the program is from fp32, of a single
# text 1.2 times. Coarse: it refuses a scale that is eight times too large, and cannot see an error below int8's own.
_NEAR, _ROUNDING = 2.0, 1e-3  # of the mean distance of the program from fp32; of the largest logit


def write_inc(job: Int8Job) -> dict[str, Any]:
    """Write the file of `job` in QuantizeLinear, DequantizeLinear and plain matmuls, and check it as `quantize_onnx` does, and
    that it computes what neural-compressor's program does.

    The source gives the metadata and the answers to keep. First all matmuls but the head's and those that
    `exclude` names are int8, then more and more of the feed-forward ones are fp32, until no more than `max_drop` points
    are lost on the tuning split; where none comes so far, the best is taken and `goal_met` is false.
    CompressError: no texts, or an `exclude` that matches nothing. CheckFailed: as `quantize_onnx`.
    """
    evaluator = job.the_evaluator()
    if job.read_program is None:
        raise RuntimeError("neural-compressor quantizes a checkpoint, and none was given")
    inputs = [value.name for value in open_session(job.source).get_inputs()]
    program = job.read_program(inputs, _OPSET)
    with program.quiet():  # the loop tells its terminal of every step
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
    """The graph, its matmuls in fp32 between the roundings as the program's are: no CPU's saturation comes in."""
    import onnxruntime
    import torch

    def plain(options: onnxruntime.SessionOptions) -> None:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL

    inputs = [torch.from_numpy(feed[name]) for name in program.inputs]
    with torch.no_grad():
        fp32, expected = (program.logits(module, inputs).numpy() for module in (program.module, trial.module))

    def answer(path: Path) -> np.ndarray:
        session = open_session(path, configure=plain)
        return run_logits(session, feed)

    found = asked(trial.folded, answer)
    error, noise = (float(np.abs(other - expected).mean()) for other in (found, fp32))
    allowed = _NEAR * noise + _ROUNDING * max(1.0, float(np.abs(fp32).max()))
    if not error <= allowed:  # written so that NaN fails
        raise CheckFailed(
            f"quantize: inc-static: the ONNX graph's logits are {error:.2g} from those of neural-compressor's program on average, "
            f"expected at most {allowed:.2g}; nothing is kept"
        )
