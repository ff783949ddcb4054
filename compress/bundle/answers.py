"""Does a bundle answer on this CPU as it did where it was made, and does everything in it name the same labels?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ..errors import CheckFailed
from ..runtime.folder import MODEL_FILES, packed_beside, read_settings
from ..sessions import open_session
from .comparing import FLIPS, compared, flips, recorded
from .document import BundleInfo
from .probes import packed_logits, probe_logits
from .report import Check, check
from .saturating import elsewhere, explanation, integer_kernels, saturation


def answer_checks(folder: Path, info: BundleInfo, *, simulate: bool = False) -> list[Check]:
    """`simulate`: also what the int8 files answer on x86 CPUs of the other kind, with or without VNNI."""
    checks = [check("labels", lambda: _labels(folder, info))]
    now: dict[str, np.ndarray] = {}
    for precision in info.models:
        checks.append(check(f"probe {precision}", lambda p=precision: _probe(folder, info, p, now)))
        if packed_beside(folder / "onnx" / MODEL_FILES[precision]).is_file():
            checks.append(check(f"probe {precision} packed", lambda p=precision: _packed_probe(folder, info, p)))
        if precision != "fp32" and precision in now:
            model = folder / "onnx" / MODEL_FILES[precision]
            checks.append(check(f"kernels {precision}", lambda path=model: integer_kernels(path)))
            checks.append(check(f"saturation {precision}", lambda p=precision: saturation(folder, info, p)))
            if simulate:
                checks.append(check(f"simulated {precision}", lambda p=precision: elsewhere(folder, info, p, now[p])))
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


def _probe(folder: Path, info: BundleInfo, precision: str, now: dict[str, np.ndarray]) -> str:
    now[precision] = found = probe_logits(folder, precision, info.probe.texts, threads=1)
    try:
        return compared(info, precision, found)
    except CheckFailed as error:
        if precision == "fp32":
            raise
        raise CheckFailed(f"{error}; {explanation(folder, info, precision, found)}") from None


def _packed_probe(folder: Path, info: BundleInfo, precision: str) -> str:
    """The packed form gives what the padded one gave."""
    return compared(info, precision, packed_logits(folder, precision, info.probe.texts))


def _agreement(info: BundleInfo, now: dict[str, np.ndarray], precision: str) -> str:
    there = flips(recorded(info, precision), recorded(info, "fp32"))
    here, rows = flips(now[precision], now["fp32"]), len(now[precision])
    mean = float(np.abs(now[precision] - now["fp32"]).mean())
    told = f"mean difference {mean:.2g}"
    if info.task.kind == "classification":
        told = f"same label on {rows - here} of {rows} texts ({rows - there} where it was made), {told}"
    if here > there + FLIPS:
        raise CheckFailed(f"{told}; use onnx/{MODEL_FILES['fp32']} on this CPU")
    return told
