"""Check that a bundle answers on this CPU as it did where it was made, and that everything in it names the same labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from ...errors import CheckFailed
from ...evaluate import threshold_of
from ...models.sentence_encoders.folders import POOLING
from ...runtime.folder import MODEL_FILES, read_json, read_settings, unpadded_beside
from ...runtime.kinds import ANSWER_KINDS, output_names
from ...runtime.passages import THRESHOLD
from ...sessions.opening import open_session
from ...spec.kinds import KINDS
from ..document import CARD, DTYPES, UNANSWERABLE, BundleInfo
from ..probes import probe_logits, unpadded_logits
from ..sentence_transformers_files import check_modules
from ..tolerance import (
    compare_with_record,
    cosines,
    decision_word,
    differences,
    flips,
    limit_of,
    makes_decisions,
    makes_vectors,
    most_flips,
    own_difference,
    recorded_outputs,
    unit_of,
)
from .pooling import check_states
from .report import Step
from .saturating import compare_with_other_cpu, explanation, integer_kernels, saturation

Metadata = Callable[[str], dict[str, str]]  # of the graph of a precision


def answer_steps(folder: Path, info: BundleInfo, *, simulate: bool = False) -> Iterator[Step]:
    """Yield the checks; each must be run before the next is requested. `simulate`: also compare the int8 files' answers on
    x86 CPUs of the other kind, with or without VNNI."""
    metadata = cache(
        lambda precision: _recorded(folder / "onnx" / MODEL_FILES[precision])
    )  # a graph is opened once for it
    yield Step("labels", "config.json", lambda: _labels(folder, info, metadata))
    yield Step("settings", "config.json", lambda: _settings(folder, info, metadata))
    if KINDS[info.task.kind].unit == "question":
        yield Step("no answer", "config.json", lambda: _threshold(folder, info))
    if makes_vectors(info):
        yield Step("pooling", POOLING, lambda: check_modules(folder, info.pooling))
    now: dict[str, np.ndarray] = {}
    for precision in info.models:
        yield from _answers_of(folder, info, precision, now, simulate)
    for precision in (name for name in now if name != "fp32" and "fp32" in now):
        name = f"onnx/{MODEL_FILES[precision]}"
        yield Step(f"{precision} against fp32", name, lambda p=precision: _agreement(info, now, p))


def _answers_of(
    folder: Path, info: BundleInfo, precision: str, now: dict[str, np.ndarray], simulate: bool
) -> Iterator[Step]:
    name = f"onnx/{MODEL_FILES[precision]}"
    yield Step(f"probe {precision}", name, lambda: _probe(folder, info, precision, now))
    unpadded = unpadded_beside(folder / name)
    if unpadded.is_file():
        yield Step(
            f"probe {precision} unpadded", f"onnx/{unpadded.name}", lambda: _unpadded_probe(folder, info, precision)
        )
    if makes_vectors(info):
        yield Step(f"states {precision}", name, lambda: check_states(folder, precision, info.probe.texts))
    if precision != "fp32" and precision in now:
        yield Step(f"kernels {precision}", name, lambda: integer_kernels(folder / name))
        yield Step(f"saturation {precision}", name, lambda: saturation(folder, info, precision))
        if simulate:
            yield Step(
                f"simulated {precision}", name, lambda: compare_with_other_cpu(folder, info, precision, now[precision])
            )


def _labels(folder: Path, info: BundleInfo, metadata: Metadata) -> str:
    """Check that bundle.json, config.json and each graph's metadata have the same names in the same order."""
    kind = info.task.kind
    maps = {"config.json": read_settings(folder).labels, "bundle.json (task)": output_names(kind, info.task.labels)}
    for precision in info.models:
        file = f"onnx/{MODEL_FILES[precision]}"
        maps[file] = output_names(kind, _recorded_labels(metadata(precision), folder / file))
    for where, names in maps.items():
        if names != info.labels:
            raise CheckFailed(f"{where} has {list(names)}, bundle.json {list(info.labels)}")
    return ", ".join(info.labels) or "none, as of vectors"


def _settings(folder: Path, info: BundleInfo, metadata: Metadata) -> str:
    """Check that what other libraries read when they open the folder agrees with bundle.json."""
    config, tokenizer = read_json(folder / "config.json"), read_json(folder / "tokenizer_config.json")
    if CARD not in info.files:
        raise CheckFailed(f"bundle.json: files: expected {CARD} among them")
    forms = [DTYPES[name] for name in info.models if name in DTYPES]
    js = config.get("transformers.js_config") or {}
    dtype = js.get("dtype") if isinstance(js, dict) else js
    numbers = {name: number for number, name in enumerate(info.labels)}
    for where, value, fitting in (
        ("config.json: label2id", config.get("label2id"), [numbers, None]),
        ("config.json: transformers.js_config.dtype", dtype, [*forms, None]),
        ("tokenizer_config.json: model_max_length", tokenizer.get("model_max_length"), [info.max_length]),
        ("config.json: the kind of task", _kind_of(folder), [info.task.kind]),
        (f"config.json: {UNANSWERABLE}", config.get(UNANSWERABLE), [info.task.unanswerable, None]),
        *(
            (f"onnx/{MODEL_FILES[name]}: metadata `kind`", metadata(name).get("kind"), [info.task.kind, None])
            for name in info.models
        ),
    ):
        if value not in fitting:
            expected = " or ".join(str(each) for each in fitting if each is not None) or "none"
            raise CheckFailed(f"{where}: expected {expected}, as bundle.json has it; found {value}")
    return f"at most {info.max_length} tokens"


def _threshold(folder: Path, info: BundleInfo) -> str:
    """Check that bundle.json, config.json and each graph's metadata have the same no-answer threshold; a missing one is 0."""
    expected = info.null_score_diff_threshold or 0.0
    thresholds = {"config.json": read_settings(folder).threshold}
    for precision in info.models:
        path = folder / f"onnx/{MODEL_FILES[precision]}"
        thresholds[f"onnx/{path.name}"] = threshold_of(open_session(path), path)
    for where, threshold in thresholds.items():
        if threshold != expected:
            raise CheckFailed(f"{where} has {THRESHOLD} {threshold:g}, bundle.json {expected:g}")
    return f"{THRESHOLD} {expected:g}"


def _kind_of(folder: Path) -> str:
    """Return the kind of task by which the runtime turns outputs into answers."""
    kind = read_settings(folder).kind
    return next(name for name, each in ANSWER_KINDS.items() if each is kind)


def _recorded(path: Path) -> dict[str, str]:
    """Return the metadata of a graph. CheckFailed: they are not text."""
    try:
        return open_session(path).get_modelmeta().custom_metadata_map
    except UnicodeDecodeError:
        raise CheckFailed(f"{path}: metadata: expected text, found bytes that are none") from None


def _recorded_labels(metadata: Mapping[str, str], path: Path) -> tuple[str, ...]:
    try:
        names = json.loads(metadata.get("labels", ""))
    except ValueError:
        raise CheckFailed(f"{path}: metadata `labels`: expected a JSON list, found none that can be read") from None
    return tuple(str(name) for name in (names if isinstance(names, list) else [names]))


def _probe(folder: Path, info: BundleInfo, precision: str, now: dict[str, np.ndarray]) -> str:
    now[precision] = outputs = probe_logits(folder, precision, info.probe.texts, threads=1)
    try:
        return compare_with_record(info, precision, outputs)
    except CheckFailed as error:
        if precision == "fp32":
            raise
        raise CheckFailed(f"{error}; {explanation(folder, info, precision, outputs)}") from None


def _unpadded_probe(folder: Path, info: BundleInfo, precision: str) -> str:
    """Check that the unpadded form gives the recorded outputs of the padded one."""
    return compare_with_record(info, precision, unpadded_logits(folder, precision, info.probe.texts))


def _agreement(info: BundleInfo, now: dict[str, np.ndarray], precision: str) -> str:
    if makes_vectors(info):
        similarities = cosines(now[precision], now["fp32"])
        return f"mean cosine {similarities.mean():.5f}, smallest {similarities.min():.5f}"
    there = flips(info, recorded_outputs(info, precision), recorded_outputs(info, "fp32"))
    here, rows = flips(info, now[precision], now["fp32"]), len(now[precision])
    mean = float(differences(info, now[precision], now["fp32"]).mean())
    detail = f"mean difference {mean:.2g}"
    if makes_decisions(info):
        detail = f"same {decision_word(info)} on {rows - here} of {rows} {unit_of(info)}s ({rows - there} where it was made), {detail}"
    most = limit_of(info, precision) + own_difference(info, precision)
    undecided = not makes_decisions(info) and bool((differences(info, now[precision], now["fp32"]) > most).any())
    if undecided or here > there + most_flips(info, rows):
        raise CheckFailed(f"{detail}; use onnx/{MODEL_FILES['fp32']} on this CPU")
    return detail
