"""Write an int8 file and its unpadded form from the fp32 ones with a method's parameters, and remove both if a check fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from ..errors import CheckFailed, CompressError
from ..graphs.matmuls import matmuls
from ..graphs.model_files import check_model, get_metadata, write_model
from ..graphs.shared_weights import share_weights
from ..runtime.folder import unpadded_beside
from ..sessions.checks import check_graph_file, check_owner
from ..sessions.opening import open_session
from ..sessions.outputs import real_rows, run_logits
from .checking import check_file, counts, describe, why_fp32
from .node_selection import QuantizationPlan, look_ups, select_nodes, without_matmuls
from .params import QuantizationParams, compute_params
from .portable import make_portable
from .qat_params import deduplicate_weights
from .quantizer import Int8Job
from .smoothing import worst_case_factors

_UNPADDED_TOLERANCE = 0.02  # relative to the largest logit; a wrong range or weight gives more than 0.1


@dataclass(frozen=True)
class Quantization:
    """The result of a method: `params` of the matmuls of `plan`, and `info` for the stage's record."""

    params: QuantizationParams
    plan: QuantizationPlan
    info: dict[str, Any]


def write_int8(job: Int8Job, quantization_of: Callable[[ModelProto, QuantizationPlan], Quantization]) -> dict[str, Any]:
    """Write the file of `job` with the result of `quantization_of` for the fp32 graph and the plan of all that can be int8
    in it. Return the record of the stage."""
    model = _read(job.source)
    if job.int8_format == "qdq":
        make_portable(model)
    plan = select_nodes(model, job.spec.exclude, embeddings=job.spec.embeddings, source=job.source)
    quantization = quantization_of(model, plan)
    quantized = _quantize_model(model, quantization.plan, quantization.params, job)
    info = {
        "int8_format": job.int8_format,
        **counts(quantized, quantization.plan),
        "stayed_fp32": why_fp32(model, quantization.plan, job.spec.exclude),
        **quantization.info,
    }
    return info | _write_files(quantized, job, quantization)


def write_calibrated(job: Int8Job, *, smooth: bool) -> dict[str, Any]:
    """`write_int8` with all matmuls in the format of `job` and ranges from its texts; `smooth`: apply SmoothQuant."""
    tuning = job.evaluator.feeds if job.evaluator else ()

    def quantization_of(model: ModelProto, plan: QuantizationPlan) -> Quantization:
        params = compute_params(model, plan, job.int8_format, job.spec, job.feeds, tuning, smoothed=smooth)
        return Quantization(params, plan, params.summary())

    return write_int8(job, quantization_of)


def write_worst_case(job: Int8Job) -> dict[str, Any]:
    """`write_int8` for a model whose weights are meaningless: as large and as slow as any smoothed one of its shape."""

    def quantization_of(model: ModelProto, plan: QuantizationPlan) -> Quantization:
        params = compute_params(model, plan, job.int8_format, job.spec, job.feeds, smoothed=False)
        return Quantization(replace(params, **vars(worst_case_factors(model, plan, job.spec))), plan, {})

    return write_int8(job, quantization_of)


def _write_files(quantized: ModelProto, job: Int8Job, quantization: Quantization) -> dict[str, Any]:
    """Write and check the file, and its unpadded form if the source has one; leave neither on failure."""
    path = job.path
    unpadded = unpadded_beside(path)
    unpadded.unlink(missing_ok=True)  # of an earlier file
    try:
        write_model(quantized, path)
        info = check_file(path, job.source)
        if unpadded_beside(job.source).is_file() and job.int8_format != "qdq":
            _write_unpadded(job, quantization)
        return info
    except BaseException:
        path.unlink(missing_ok=True)
        unpadded.unlink(missing_ok=True)
        raise


def _quantize_model(model: ModelProto, plan: QuantizationPlan, params: QuantizationParams, job: Int8Job) -> ModelProto:
    quantized = params.applied(model, plan, job.spec)
    describe(quantized, get_metadata(model), job.described())
    return quantized


def _write_unpadded(job: Int8Job, quantization: Quantization) -> None:
    """Write the unpadded form of the file: its ranges and int8 weights, in the graph of the source's unpadded form."""
    source, path, form = job.source, job.path, unpadded_beside(job.source)
    check_owner(form, get_metadata(onnx.load(form, load_external_data=False)), source, source.read_bytes())
    model = _read(form)
    plan = select_nodes(model, job.spec.exclude, embeddings=job.spec.embeddings, source=form)
    plan = without_matmuls(plan, [name for name in quantization.plan.kept if name not in plan.kept])
    quantized = _quantize_model(model, plan, quantization.params, job)
    counts(quantized, plan)
    unpadded = unpadded_beside(path)
    share_weights(quantized, path)
    write_model(quantized, unpadded)
    check_model(unpadded)
    _check_same(unpadded, path, padded="dynamic" not in quantization.params.int8_formats.values())


def _check_same(unpadded: Path, path: Path, *, padded: bool) -> None:
    """Check that both files give the same logits. Fixed ranges do not depend on the padding, but ranges taken at run time
    do, so those are compared without padding. The remaining difference is rounding to a neighbouring quantized value."""
    sessions = [open_session(file) for file in (unpadded, path)]
    mask = np.ones((4, 3), np.int64)
    if padded:
        mask[1:3, 2] = mask[3, 1:] = 0
    full = {"input_ids": (np.arange(12) % 4 + 1).reshape(4, 3) * mask, "attention_mask": mask}
    full["token_type_ids"] = np.zeros_like(mask)
    actual, expected = (real_rows(run_logits(session, full), mask) for session in sessions)
    error, scale = float(np.abs(actual - expected).max()), max(1.0, float(np.abs(expected).max()))
    if not error <= _UNPADDED_TOLERANCE * scale:
        raise CheckFailed(f"{unpadded}: logits differ by {error:.2g} from those of {path.name}; neither is kept")


def _read(source: Path) -> ModelProto:
    check_graph_file(source)
    model = onnx.load(source)
    matmul_names = matmuls(model.graph)
    if matmul_names.int8 or not (matmul_names.fp32 or look_ups(model)):
        raise CompressError(
            f"{source}: expected an fp32 model, found {len(matmul_names.int8)} int8 and {len(matmul_names.fp32)} fp32 "
            "weight matmuls; quantize the file that `export` wrote"
        )
    deduplicate_weights(model)
    return model
