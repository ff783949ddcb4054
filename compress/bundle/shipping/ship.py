"""Ship a finished run as a bundle, atomically."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ... import machine
from ...errors import CompressError
from ...files.paths import expand_home, with_display_paths
from ...models.checkpoints.tokenizer_settings import tokenizer_settings_of
from ...models.checkpoints.vocabularies import tokenizer_settings
from ...models.dimensions import has_segments, read_config
from ...models.families import FAMILIES
from ...models.pruned.shape import PrunedShape
from ...provenance import running_code
from ...report.sections.finetuning_choice import choices_of
from ...results import Machine, ModelResult, TaskInfo
from ...runtime.folder import MODEL_FILES, read_json, read_settings, unpadded_beside
from ...runtime.kinds import ANSWER_KINDS, output_names
from ...runtime.passages import THRESHOLD
from ...spec.kinds import KINDS
from ...tokenization.truncation import untruncated
from ..document import CARD, DTYPES, UNANSWERABLE, BundleInfo, Probe, write_bundle
from ..files import TOKENIZER_FILES, is_weights, measure
from ..graph_files import graph_file
from ..probes import probe_logits, probe_texts
from ..sentence_transformers_files import check_layers, pooling_of, write_modules
from ..target import building, check_name, check_target, move_checked, recover
from . import card
from .source import Source, read_source

_SOME = 30  # words more than a window of the model holds, so that a long text needs two


def ship(
    run: str | Path,
    out: str | Path,
    *,
    store: str | Path,
    model: str | None = None,
    precisions: Sequence[str] = (),
    force: bool = False,
    with_checkpoint: bool = False,
    licence: str | None = None,
    base_model: str | None = None,
    name: str | None = None,
) -> Path:
    """Write the bundle of a finished `run` to `out`; return its resolved path.

    `model`: name of the run's model (default: the last one made). `precisions`: which of its forms to include, `fp32`,
    `int8`, `avx2` or `qdq` (default: all that the run has). `force` replaces an existing bundle, and nothing else.
    `with_checkpoint` adds the weights in safetensors. `licence`, `base_model` (a hub id) and `name` are for the model card
    and override what the run says. Raises `CompressError`: the run, its artefacts, `out`. CheckFailed: a model that does not
    answer.
    """
    run, out, store = expand_home(run), expand_home(out), expand_home(store)
    check_name(out)
    recover(out)
    check_target(out, force)
    out = out.resolve()
    source = read_source(run, store, model, precisions)
    with building(out) as folder:
        _fill(folder, source, with_checkpoint, {"licence": licence, "base_model": base_model, "title": name})
        move_checked(folder, out, force)
    return out


def _fill(folder: Path, source: Source, with_checkpoint: bool, claims: Mapping[str, str | None]) -> None:
    _copy_configuration(folder, source)
    (folder / "onnx").mkdir()
    for precision, graph in source.graphs.items():
        shutil.copyfile(graph, folder / "onnx" / MODEL_FILES[precision])
        if unpadded_beside(graph).is_file():
            shutil.copyfile(unpadded_beside(graph), unpadded_beside(folder / "onnx" / MODEL_FILES[precision]))
    if with_checkpoint:
        check_layers(source.checkpoint)
        for path in filter(lambda path: is_weights(path.name), source.checkpoint.iterdir()):
            shutil.copyfile(path, folder / path.name)
    info, pruned = _describe(folder, source), PrunedShape.of(read_config(source.checkpoint)) is not None
    info = info.model_copy(update={key: value for key, value in claims.items() if value is not None})
    (folder / CARD).write_text(
        card.render(
            info,
            has_checkpoint=with_checkpoint,
            known=_is_known_family(source),
            pruned=pruned,
            cut_side=read_settings(folder).truncation_side,
        ),
        encoding="utf-8",
    )
    write_bundle(info.model_copy(update={"files": measure(folder)}), folder)


def _copy_configuration(folder: Path, source: Source) -> None:
    checkpoint = source.checkpoint
    config = _config(checkpoint, source.result.task) | _of_transformers_js(source)
    _write_json(folder / "config.json", config)
    if KINDS[source.result.task.kind].unit == "pair":
        write_modules(folder, config, source.max_length)
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(checkpoint, source.max_length))
    if (checkpoint / "tokenizer.json").is_file():
        shutil.copyfile(checkpoint / "tokenizer.json", folder / "tokenizer.json")
    else:
        from ...models.checkpoints.folders import load_tokenizer

        (folder / "tokenizer.json").write_text(
            untruncated(load_tokenizer(checkpoint)).to_str(pretty=True), encoding="utf-8"
        )
    for name in TOKENIZER_FILES:
        if (checkpoint / name).is_file():
            shutil.copyfile(checkpoint / name, folder / name)


def _config(checkpoint: Path, task: TaskInfo) -> dict[str, Any]:
    """Return the checkpoint's config with the task's label names. CompressError: its own names contradict the task's."""
    path, config = checkpoint / "config.json", read_config(checkpoint)
    expected = output_names(task.kind, task.labels)
    if not expected:  # a config without names is read as one with two labels
        return {key: value for key, value in config.items() if key not in ("id2label", "label2id")}
    id2label = config.get("id2label") or {}
    names = [id2label[key] for key in sorted(id2label, key=int)]
    generic = all(re.fullmatch(r"LABEL_\d+", name) for name in names)
    if task.labels and not generic and [name.casefold() for name in names] != [name.casefold() for name in expected]:
        raise CompressError(f"{path}: id2label: expected the task's {list(expected)}, found {names}")
    config["id2label"] = {str(index): name for index, name in enumerate(expected)}
    config["label2id"] = {name: index for index, name in enumerate(expected)}
    kind = ANSWER_KINDS[task.kind]
    config |= {"problem_type": kind.problem_type} if kind.problem_type else {}
    config |= {UNANSWERABLE: task.unanswerable} if kind.unit == "question" else {}
    return config | dict(kind.config)


def _of_transformers_js(source: Source) -> dict[str, Any]:
    """Return which file transformers.js opens by default; otherwise, in Node, that is the fp32 one."""
    dtype = next((DTYPES[name] for name in MODEL_FILES if name in source.graphs and name in DTYPES), None)
    return {"transformers.js_config": {"dtype": dtype}} if dtype and _is_known_family(source) else {}


def _is_known_family(source: Source) -> bool:
    """Whether transformers has the model's family."""
    return FAMILIES[read_config(source.checkpoint)["model_type"]].register_classes is None


def _tokenizer_config(checkpoint: Path, max_length: int) -> dict[str, Any]:
    """Return the tokenizer's config with the bundle's length limit, for consumers that truncate there, and with what gives
    the model its tokens and segments."""
    from ...models.checkpoints.folders import load_tokenizer

    config = read_config(checkpoint)
    settings = tokenizer_settings_of(
        load_tokenizer(checkpoint), family=config["model_type"], segments=has_segments(config)
    )
    fields = tokenizer_settings(checkpoint) | settings
    return {**fields, "model_max_length": max_length}


def _describe(folder: Path, source: Source) -> BundleInfo:
    result, model = source.result, next(iter(source.models.values())).name
    weights = "student" if model == "student" and result.student_origin is not None else "teacher"
    licence = result.settings.get(f"{weights}_licence")
    unit = KINDS[result.task.kind].unit
    columns = 1 if unit == "pair" else min(2, len(source.columns))
    texts = probe_texts(columns, unit=unit, most_words=source.max_length + _SOME if unit == "word" else None)
    logits = {name: probe_logits(folder, name, texts, threads=1).tolist() for name in source.graphs}
    return BundleInfo(
        name=result.run,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        model=model,
        teacher=result.teacher,
        base_model=result.settings.get(f"{weights}_hub"),
        licence=None if licence == "unknown" else licence,
        dataset=result.settings.get("dataset_hub"),
        task=result.task,
        text_columns=source.columns,
        labels=output_names(result.task.kind, result.task.labels),
        max_length=source.max_length,
        pooling=pooling_of(folder / "config.json", read_json(folder / "config.json")) if unit == "pair" else None,
        null_score_diff_threshold=read_json(folder / "config.json").get(THRESHOLD) if unit == "question" else None,
        models=source.models,  # type: ignore[arg-type]
        graphs={name: graph_file(folder, name) for name in source.graphs},  # type: ignore[misc]
        fastest=_fastest(source.models),  # type: ignore[arg-type]
        baseline=result.models[0],
        noise=result.noise,
        measured_on=result.machine,
        verified_on=Machine.here(),
        versions=result.versions | machine.versions(),
        code=result.code,
        shipped_by=running_code(),
        origin=result.origin,
        student_origin=result.student_origin,
        ensemble=result.ensemble,
        choices=choices_of(result),
        corpus=result.corpus,
        vocabulary=result.vocabulary if result.vocabulary and result.vocabulary.model == model else None,
        recipe=with_display_paths(result.recipe),  # older runs recorded paths
        probe=Probe(texts=texts, logits=logits),  # type: ignore[arg-type]
        files={},
    )


def _fastest(models: Mapping[str, ModelResult]) -> str | None:
    """Return the precision with the least time; None if latency was not measured."""
    rows = {name: model.onnx.latency[0] for name, model in models.items() if model.onnx and model.onnx.latency}
    times = {name: row.p50 if row.cpu_p50 is None else row.cpu_p50 for name, row in rows.items()}
    return min(times, key=lambda name: times[name]) if times else None


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
