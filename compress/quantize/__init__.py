"""fp32 ONNX -> int8 ONNX, and proof that it happened: what stayed fp32 is named, or the outcome is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from ..errors import CheckFailed, CompressError
from ..graphs import check_model, get_metadata, products, write_model
from ..packed import share_weights
from ..runtime.folder import packed_beside
from ..sessions import check_graph_file, check_owner, open_session
from ..spec.quantization import Quantize
from .checking import check_file, counts, describe
from .choosing import Choice, choose
from .given import Trained, given, tidy
from .portable import make_portable
from .reasons import why_fp32
from .sampling import Feed
from .search import Found, Judge, search, without
from .settling import Settled, settle

__all__ = ["FILES", "quantize_onnx"]

_PACKED_TOLERANCE = 0.02  # of the largest logit; a wrong range or weight shows above 0.1
# layout -> the file that holds it, under the name that other tools know or can tell.
FILES = {"dynamic": "model_quantized.onnx", "static": "model_quantized.onnx", "qdq": "model_qdq.onnx"}


def quantize_onnx(
    source: Path,
    out: Path,
    spec: Quantize,
    *,
    layout: str | None = None,
    feeds: Sequence[Feed] = (),
    judge: Judge | None = None,
    trained: Trained | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Write `out`/model_quantized.onnx and check it: ONNX checker, counts of nodes, size, a run.

    `layout`: `dynamic` or `static` (the default is that of `spec.method`), or `qdq`, static in portable operators, which
    goes to `out`/model_qdq.onnx; `name`: of the file, in place of these. Where `source` has a packed form beside it, the
    first two have one too. The static ones take their ranges from `feeds`, padded batches of the model's inputs, and by the
    method `qat` from `trained`; `judge` answers what smoothing and a search ask.

    Every product with a constant weight becomes int8, except those that `exclude` names or a search gives back, and the
    classifier: one row of a few columns, whose error would go straight into the logits and whose size is nothing. The
    pooler and the keys and values that the fast graph absorbed have int8 weights and are multiplied in fp32.
    CompressError: `source`, an `exclude` that matches nothing or all, or no feeds. CheckFailed: a product or table that
    should be int8 stayed fp32, or the file is not smaller; then no file is left.
    """
    source, layout = Path(source), layout or spec.layout("int8")
    if spec.calibrates(layout) and not feeds:
        raise CompressError(
            f"{source}: the {layout} form takes the ranges of activations from texts, and the task has none to train on"
        )
    model = _read(source)
    if layout == "qdq":
        make_portable(model)
    found = _found(model, source, layout, spec, feeds, judge, trained)
    quantized = _quantized(model, found.choice, layout, found.settled, spec)
    info = {
        "layout": layout,
        **counts(quantized, found.choice),
        "stayed_fp32": why_fp32(model, found.choice, spec.exclude),
        **found.info,
    }
    return info | _written(quantized, source, Path(out) / (name or FILES[layout]), spec, layout, found)


def _written(
    quantized: ModelProto, source: Path, path: Path, spec: Quantize, layout: str, found: Found
) -> dict[str, Any]:
    """The file `path`, checked, and its packed form where `source` has one; or neither."""
    packed = packed_beside(path)
    packed.unlink(missing_ok=True)  # of an earlier file
    try:
        write_model(quantized, path)
        info = check_file(path, source)
        if packed_beside(source).is_file() and layout != "qdq":
            _write_packed(source, path, spec, layout, found)
        return info
    except BaseException:
        path.unlink(missing_ok=True)
        packed.unlink(missing_ok=True)
        raise


def _found(
    model: ModelProto,
    source: Path,
    layout: str,
    spec: Quantize,
    feeds: Sequence[Feed],
    judge: Judge | None,
    trained: Trained | None,
) -> Found:
    choice = choose(model, spec.exclude, embeddings=spec.embeddings, source=source)
    if spec.method == "qat":
        return Found(given(choice, layout, trained, source), choice, {})
    if spec.method != "auto":
        settled = settle(model, choice, layout, spec, feeds, judge.feeds if judge else ())
        return Found(settled, choice, settled.told())
    if judge is None:
        raise CompressError(
            f"{source}: `method: auto` asks texts that were put aside from training, and there are none"
        )
    return search(model, source, choice, spec, feeds, judge)


def _quantized(model: ModelProto, choice: Choice, layout: str, settled: Settled, spec: Quantize) -> ModelProto:
    quantized = settled.applied(model, choice, spec)
    describe(quantized, get_metadata(model), spec, layout)
    return quantized


def _write_packed(source: Path, path: Path, spec: Quantize, layout: str, found: Found) -> None:
    """The packed form of the file `path`: its levels, ranges and weights, in the graph of that of `source`."""
    form = packed_beside(source)
    check_owner(form, get_metadata(onnx.load(form, load_external_data=False)), source, source.read_bytes())
    model = _read(form)
    choice = choose(model, spec.exclude, embeddings=spec.embeddings, source=form)
    choice = without(choice, [name for name in found.choice.kept if name not in choice.kept])
    quantized = _quantized(model, choice, layout, found.settled, spec)
    counts(quantized, choice)
    packed = packed_beside(path)
    share_weights(quantized, path)
    write_model(quantized, packed)
    check_model(packed)
    _check_same(packed, path, padded="dynamic" not in found.settled.layouts.values())


def _check_same(packed: Path, path: Path, *, padded: bool) -> None:
    """Fixed levels are the same whatever stands in the padding; a run's own range is where there is none. What is left
    is a level that rounding tips."""
    sessions = [open_session(file) for file in (packed, path)]
    mask = np.ones((4, 3), np.int64)
    if padded:
        mask[1:3, 2] = mask[3, 1:] = 0
    full = {"input_ids": (np.arange(12) % 4 + 1).reshape(4, 3) * mask, "attention_mask": mask}
    full["token_type_ids"] = np.zeros_like(mask)
    feed = {value.name: full[value.name] for value in sessions[0].get_inputs()}
    found, expected = (np.asarray(session.run(["logits"], feed)[0]) for session in sessions)
    error, scale = float(np.abs(found - expected).max()), max(1.0, float(np.abs(expected).max()))
    if not error <= _PACKED_TOLERANCE * scale:
        raise CheckFailed(f"{packed}: logits differ by {error:.2g} from those of {path.name}; neither is kept")


def _read(source: Path) -> ModelProto:
    check_graph_file(source)
    model = onnx.load(source)
    found = products(model.graph)
    if found.int8 or not found.fp32:
        raise CompressError(
            f"{source}: expected an fp32 model, found {len(found.int8)} int8 and {len(found.fp32)} fp32 weight "
            "products; quantize the file that `export` wrote"
        )
    tidy(model)
    return model
