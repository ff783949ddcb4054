"""Does a bundle answer on this CPU as it did where it was made, and does everything in it name the same labels?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ..errors import CheckFailed
from ..runtime.folder import MODEL_FILES, packed_beside, read_settings
from ..sessions import open_session
from .document import BundleInfo
from .probes import packed_logits, probe_logits
from .report import Check, check

# Relative to the largest logit, at least 1. fp32: the same arithmetic in another order of sums; a wrong
# weight or a wrong mask shows above 1e-2.
FP32_TOLERANCE = 5e-4
# int8 kernels differ by instruction set: without VNNI pairs of products are summed with 16-bit saturation,
# and one step of rounding in an activation moves on through all layers. What a sound kernel changes is of the
# size of quantization's own error, which the bundle shows: int8 against fp32 where it was made.
INT8_TOLERANCE = 0.25
INT8_TIMES_QUANTIZATION_ERROR = 3.0
FLIPS = 2  # of the sixteen probe texts, of a quantized model


def answer_checks(folder: Path, info: BundleInfo) -> list[Check]:
    checks = [check("labels", lambda: _labels(folder, info))]
    now: dict[str, np.ndarray] = {}
    for precision in info.models:
        checks.append(check(f"probe {precision}", lambda p=precision: _probe(folder, info, p, now)))
        if packed_beside(folder / "onnx" / MODEL_FILES[precision]).is_file():
            checks.append(check(f"probe {precision} packed", lambda p=precision: _packed_probe(folder, info, p)))
    for precision in (name for name in now if name != "fp32" and "fp32" in now):
        checks.append(check(f"{precision} against fp32", lambda p=precision: _agreement(info, now, p)))
    return checks


def _labels(folder: Path, info: BundleInfo) -> str:
    """The same names in the same order in bundle.json, config.json and each graph's metadata."""
    graph = list(info.task.labels)
    maps = {"config.json": list(read_settings(folder).labels), "bundle.json (task)": graph or ["score"]}
    for precision in info.models:
        recorded = _recorded_labels(folder / "onnx" / MODEL_FILES[precision])
        maps[f"onnx/{MODEL_FILES[precision]}"] = recorded if graph else recorded or ["score"]
    for where, names in maps.items():
        if names != list(info.labels):
            raise CheckFailed(f"{where} has {names}, bundle.json {list(info.labels)}")
    return ", ".join(info.labels)


def _recorded_labels(path: Path) -> list[str]:
    try:
        names = json.loads(open_session(path).get_modelmeta().custom_metadata_map.get("labels", ""))
    except ValueError:  # text that is not JSON, bytes that are not text
        raise CheckFailed(f"{path}: metadata `labels`: expected a JSON list, found none that can be read") from None
    return [str(name) for name in names] if isinstance(names, list) else [str(names)]


def _recorded(info: BundleInfo, precision: str) -> np.ndarray:
    rows = info.probe.logits.get(precision, ())  # type: ignore[call-overload]
    if len(rows) != len(info.probe.texts) or any(len(row) != len(info.labels) for row in rows) or not rows:
        raise CheckFailed(f"bundle.json: probe.logits.{precision}: expected one row per text, one column per label")
    return np.array(rows)


def _probe(folder: Path, info: BundleInfo, precision: str, now: dict[str, np.ndarray]) -> str:
    now[precision] = found = probe_logits(folder, precision, info.probe.texts, threads=1)
    return _compared(info, precision, found)


def _packed_probe(folder: Path, info: BundleInfo, precision: str) -> str:
    """The packed form gives what the padded one gave: all texts in a batch as each by itself."""
    return _compared(info, precision, packed_logits(folder, precision, info.probe.texts))


def _compared(info: BundleInfo, precision: str, found: np.ndarray) -> str:
    expected = _recorded(info, precision)
    largest = float(np.abs(found - expected).max())
    limit, flips = _limit(info, precision, expected), _flips(found, expected)
    told = f"largest difference {largest:.2g} (at most {limit:.2g})"
    if info.task.kind == "classification":
        told += f", labels changed {flips} of {len(found)}"
    if not largest <= limit or flips > (0 if precision == "fp32" else FLIPS):
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


def _agreement(info: BundleInfo, now: dict[str, np.ndarray], precision: str) -> str:
    there = _flips(_recorded(info, precision), _recorded(info, "fp32"))
    here, rows = _flips(now[precision], now["fp32"]), len(now[precision])
    mean = float(np.abs(now[precision] - now["fp32"]).mean())
    told = f"mean difference {mean:.2g}"
    if info.task.kind == "classification":
        told = f"same label on {rows - here} of {rows} texts ({rows - there} where it was made), {told}"
    if here > there + FLIPS:
        raise CheckFailed(f"{told}; use onnx/{MODEL_FILES['fp32']} on this CPU")
    return told
