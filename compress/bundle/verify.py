"""Is a bundle whole, safe to open, and does it answer on this CPU as it did where it was made?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import machine
from ..errors import CheckFailed, CompressError
from ..runtime.folder import MODEL_FILES, read_settings
from ..sessions import check_graph_file, open_session
from .document import BundleInfo, read_bundle
from .files import problems
from .probes import probe_logits
from .report import Check, Report, check

if TYPE_CHECKING:
    from .accuracy import Measured

# Relative to the largest logit, at least 1. fp32: the same arithmetic in another order of sums; a wrong
# weight or a wrong mask shows above 1e-2.
FP32_TOLERANCE = 5e-4
# int8 kernels differ by instruction set: without VNNI pairs of products are summed with 16-bit saturation,
# and one step of rounding in an activation moves on through all layers. What a sound kernel changes is of the
# size of quantization's own error, which the bundle shows: int8 against fp32 where it was made.
INT8_TOLERANCE = 0.25
INT8_TIMES_QUANTIZATION_ERROR = 3.0
FLIPS = 2  # of the sixteen probe texts, int8 only


def verify(
    bundle: Path, *, task: str | None = None, data_dir: Path | None = None, threads: int | None = None
) -> Report:
    """Every check that can be made, passed or not; later ones are left out where a file is not what it should be.

    `task` (a built-in name or a task file) or `data_dir` (GLUE files) asks for the scores too. Reads nothing
    outside `bundle` but these. Raises `CompressError` when there is no bundle or no such data.
    """
    folder = Path(bundle)
    if not folder.is_dir():
        raise CompressError(f"{folder}: expected a bundle's folder, found {'a file' if folder.exists() else 'nothing'}")
    folder = folder.resolve()
    try:
        info = read_bundle(folder)
    except CheckFailed as error:
        return _report(folder, [Check(name="bundle.json", passed=False, detail=str(error))], None)
    measured = _measured(info, task, data_dir)
    checks = [Check(name="bundle.json", passed=True, detail="matches its own digest")]
    for group in (_file_checks, _graph_checks, _answer_checks):
        checks += group(folder, info)
        if not all(one.passed for one in checks):
            return _report(folder, checks, info, "the later checks were not made")
    if measured is not None:
        checks += [check(f"scores {p}", lambda p=p, m=measured: m.compare(folder, p, threads)) for p in info.models]
        return _report(folder, checks, info, *measured.notes())
    return _report(folder, checks, info)


def _measured(info: BundleInfo, task: str | None, data_dir: Path | None) -> Measured | None:
    if task is None and data_dir is None:
        return None
    from .accuracy import measured

    return measured(info, task, data_dir)


def _report(folder: Path, checks: list[Check], info: BundleInfo | None, *notes: str) -> Report:
    here = machine.isa()
    if info is not None and info.verified_on.isa != here:
        there = ", ".join(info.verified_on.isa)
        notes += (f"made on a CPU with {there}; this one has {', '.join(here)}: int8 answers may differ a little",)
    theirs, ours = (info.versions if info else {}).get("onnxruntime"), machine.versions().get("onnxruntime")
    if theirs != ours and info is not None:
        notes += (f"made with onnxruntime {theirs}, checked with {ours}",)
    return Report(bundle=str(folder), isa=here, checks=tuple(checks), notes=notes)


def _file_checks(folder: Path, info: BundleInfo) -> list[Check]:
    def found() -> str:
        if wrong := problems(folder, info.files):
            raise CheckFailed("; ".join(wrong))
        return f"{len(info.files)} files, {sum(entry.bytes for entry in info.files.values()):,} bytes"

    return [check("files", found)]


def _graph_checks(folder: Path, info: BundleInfo) -> list[Check]:
    checks = [check("models", lambda: _expected_models(info))]
    if checks[0].passed:
        checks += [check(f"onnx {p}", lambda p=p: _graph(_model(folder, p))) for p in info.models]
    return checks


def _model(folder: Path, precision: str) -> Path:
    return folder / "onnx" / MODEL_FILES[precision]


def _expected_models(info: BundleInfo) -> str:
    """No graph that was not measured: a runtime would pick it up by its name."""
    expected = {f"onnx/{MODEL_FILES[precision]}" for precision in info.models}
    found = {name for name in info.files if name.endswith(".onnx")}
    if found != expected or not expected:
        raise CheckFailed(f"expected {sorted(expected)}, found {sorted(found)}")
    return ", ".join(sorted(found))


def _graph(path: Path) -> str:
    import onnx

    from ..graphs import check_model

    check_graph_file(path)  # before anything that would follow a location out of the folder
    model = onnx.load(str(path), load_external_data=False)
    external = [t.name for t in model.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    if external:
        raise CheckFailed(f"{path}: expected all weights in the file, found {external[0]} outside it")
    check_model(path)
    return f"{len(model.graph.node)} nodes, all weights inside, accepted by the ONNX checker"


def _answer_checks(folder: Path, info: BundleInfo) -> list[Check]:
    checks = [check("labels", lambda: _labels(folder, info))]
    now: dict[str, np.ndarray] = {}
    for precision in info.models:
        checks.append(check(f"probe {precision}", lambda p=precision: _probe(folder, info, p, now)))
    if len(now) == 2:
        checks.append(check("int8 against fp32", lambda: _agreement(info, now)))
    return checks


def _labels(folder: Path, info: BundleInfo) -> str:
    """The same names in the same order in bundle.json, config.json and each graph's metadata."""
    graph = list(info.task.labels)
    maps = {"config.json": list(read_settings(folder).labels), "bundle.json (task)": graph or ["score"]}
    for precision in info.models:
        recorded = open_session(_model(folder, precision)).get_modelmeta().custom_metadata_map.get("labels", "")
        maps[f"onnx/{MODEL_FILES[precision]}"] = (_names(recorded) or ["score"]) if not graph else _names(recorded)
    for where, names in maps.items():
        if names != list(info.labels):
            raise CheckFailed(f"{where} has {names}, bundle.json {list(info.labels)}")
    return ", ".join(info.labels)


def _names(recorded: str) -> list[str]:
    try:
        names = json.loads(recorded)
    except ValueError:
        raise CheckFailed(f"a graph's metadata: expected its labels as a JSON list, found {recorded!r}") from None
    return [str(name) for name in names] if isinstance(names, list) else [str(names)]


def _recorded(info: BundleInfo, precision: str) -> np.ndarray:
    rows = info.probe.logits.get(precision, ())  # type: ignore[call-overload]
    if len(rows) != len(info.probe.texts) or any(len(row) != len(info.labels) for row in rows) or not rows:
        raise CheckFailed(f"bundle.json: probe.logits.{precision}: expected one row per text, one column per label")
    return np.array(rows)


def _probe(folder: Path, info: BundleInfo, precision: str, now: dict[str, np.ndarray]) -> str:
    expected = _recorded(info, precision)
    now[precision] = found = probe_logits(folder, precision, info.probe.texts, threads=1)
    largest = float(np.abs(found - expected).max())
    limit, flips = _limit(info, precision, expected), _flips(found, expected)
    told = f"largest difference {largest:.2g} (at most {limit:.2g})"
    if info.task.kind == "classification":
        told += f", labels changed {flips} of {len(found)}"
    if not largest <= limit or flips > (FLIPS if precision == "int8" else 0):
        raise CheckFailed(f"{told}; this CPU does not compute what the bundle's record says")
    return told


def _limit(info: BundleInfo, precision: str, expected: np.ndarray) -> float:
    scale = max(1.0, float(np.abs(expected).max()))
    if precision == "fp32":
        return FP32_TOLERANCE * scale
    own = float(np.abs(expected - _recorded(info, "fp32")).max()) if "fp32" in info.models else 0.0
    return max(INT8_TOLERANCE * scale, INT8_TIMES_QUANTIZATION_ERROR * own)


def _flips(first: np.ndarray, second: np.ndarray) -> int:
    return int((first.argmax(axis=1) != second.argmax(axis=1)).sum())


def _agreement(info: BundleInfo, now: dict[str, np.ndarray]) -> str:
    there = _flips(_recorded(info, "int8"), _recorded(info, "fp32"))
    here, rows = _flips(now["int8"], now["fp32"]), len(now["int8"])
    mean = float(np.abs(now["int8"] - now["fp32"]).mean())
    told = f"mean difference {mean:.2g}"
    if info.task.kind == "classification":
        told = f"same label on {rows - here} of {rows} texts ({rows - there} where it was made), {told}"
    if here > there + FLIPS:
        raise CheckFailed(f"{told}; use onnx/{MODEL_FILES['fp32']} on this CPU")
    return told
