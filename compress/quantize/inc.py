"""neural-compressor's static quantization of a checkpoint -> int8 ONNX, checked as our own."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ..errors import CheckFailed, CompressError
from ..graphs import get_metadata, write_model
from ..runtime.folder import packed_beside
from ..sessions import open_session
from ..spec.quantization import Quantize
from . import FILES
from .checking import check_file, counts, describe
from .fallbacks import Fallbacks, Program, Trial
from .reasons import why_fp32
from .sampling import Feed
from .search import Judge, asked

__all__ = ["Program", "check_installed", "quantize_inc"]

_PACKAGES = ("neural_compressor", "torchao")
# Both sides have the same levels, yet a sum that rounds differently tips one, which tips others further on: of 127 texts on
# a six-layer model's three-layer student the two are half as far from each other as the program is from fp32, of a single
# text 1.2 times. Coarse: it refuses a scale that is eight times too large, and cannot see an error below int8's own.
_NEAR, _ROUNDING = 2.0, 1e-3  # of the mean distance of the program from fp32; of the largest logit


def check_installed() -> None:
    """CompressError where a package is missing. Nothing is imported."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise CompressError(
            f"quantize.method: inc-static needs {' and '.join(missing)}, found none installed; "
            "pip install 'bert-compress[inc]'"
        )


def quantize_inc(
    source: Path,
    out: Path,
    spec: Quantize,
    program: Program,
    *,
    feeds: Sequence[Feed],
    judge: Judge | None,
    name: str | None = None,
) -> dict[str, Any]:
    """Write `out`/model_quantized.onnx in QuantizeLinear, DequantizeLinear and plain products, and check it as
    `quantize_onnx` does, and that it computes what neural-compressor's program does.

    `source`: the fp32 ONNX file of the same checkpoint, for its metadata and for the answers to keep; `program`: that
    checkpoint; `feeds`: padded batches of training texts, for the ranges. First all products but the head's and those
    that `exclude` names are int8, then more and more of the feed-forward ones are fp32, until no more than `max_drop` points
    are lost on the tuning split; where none comes so far, the best is taken and `goal_met` is false.
    CompressError: a package that is missing, no texts, or an `exclude` that matches nothing. CheckFailed: as `quantize_onnx`.
    """
    check_installed()
    if not feeds or judge is None:
        raise CompressError(
            f"{source}: `method: inc-static` takes ranges from training texts and asks texts that were put aside from "
            "training, and there are none"
        )
    source, path = Path(source), Path(out) / (name or FILES["static"])
    packed_beside(path).unlink(missing_ok=True)  # of an earlier file
    search = Fallbacks(source, spec, program, feeds, judge)
    trial = search.found()
    _check_program(trial, program, max(feeds, key=lambda feed: len(feed["input_ids"])))
    model = trial.model
    info = {
        "layout": spec.layout("int8"),
        **counts(model, trial.choice),
        "stayed_fp32": why_fp32(search.plain, trial.choice, spec.exclude),
        **search.info(trial),
    }
    describe(model, get_metadata(onnx.load(source, load_external_data=False)), spec, spec.layout("int8"))
    try:
        write_model(model, path)
        return info | check_file(path, source)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _check_program(trial: Trial, program: Program, feed: Feed) -> None:
    """The graph, its products in fp32 between the roundings as the program's are: no CPU's saturation comes in."""
    import onnxruntime
    import torch

    def plain(options: onnxruntime.SessionOptions) -> None:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL

    inputs = [torch.from_numpy(feed[name]) for name in program.inputs]
    with torch.no_grad():
        fp32, expected = (module(*inputs).numpy() for module in (program.module, trial.module))

    def answer(path: Path) -> np.ndarray:
        session = open_session(path, configure=plain)
        return np.asarray(session.run(["logits"], {name: feed[name] for name in program.inputs})[0])

    found = asked(trial.folded, answer)
    error, noise = (float(np.abs(other - expected).mean()) for other in (found, fp32))
    allowed = _NEAR * noise + _ROUNDING * max(1.0, float(np.abs(fp32).max()))
    if not error <= allowed:  # written so that NaN fails
        raise CheckFailed(
            f"quantize: inc-static: the ONNX graph's logits are {error:.2g} from those of neural-compressor's program on average, "
            f"expected at most {allowed:.2g}; nothing is kept"
        )
