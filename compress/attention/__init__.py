"""Attention maps of a run's teacher and student on a text of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..bundle.shipping.source import artefact, finished_result, model_entry, setting
from ..errors import CompressError
from ..models.checkpoints.folders import load_classifier, load_tokenizer
from ..models.dimensions import Dimensions, dimensions, read_config
from ..models.families import FAMILIES
from ..models.heads import HEADS
from ..report.attention import AttentionMaps, ModelMaps, token_limit
from ..results import MODELS, Result
from ..runtime.cutting import Cutter, truncation_side
from ..runtime.folder import read_json
from ..runtime.reading import check_unicode
from ..tasks.batches.task_batches import check_room
from .matching import match_layers

__all__ = ["attention_maps", "match_layers"]


def attention_maps(run: Path, text: str, pair: str | None = None, *, store: Path) -> AttentionMaps:
    """Return the maps of the fp32 teacher, the first of several, and of the last other fp32 model of a finished `run`, each with its own
    tokens, cut to the run's `max_length` and to what fits on a page. Raises `CompressError` for the run, its artefacts, a model whose
    attention cannot be read, or the texts."""
    result = finished_result(run)
    names = dict.fromkeys(model.name for model in result.models if model.precision == "fp32")
    if len(names) < 2:
        raise CompressError(
            f"{run}: expected a student beside the teacher, found {', '.join(names) or 'no fp32 model'} alone; "
            "name a run that distils or prunes"
        )
    _check_texts(run, result, text, pair)
    paths = read_json(run / MODELS)
    roles = {"teacher": next(iter(names)), "student": next(reversed(names))}
    folders = {
        role: artefact(store, model_entry(run, paths, f"{name}-fp32")["checkpoint"], run / MODELS)
        for role, name in roles.items()
    }
    sizes = {role: _sizes(run, roles[role], folder) for role, folder in folders.items()}
    limit = min(
        setting(run, result, "max_length", int), token_limit(sum(each.layers * each.heads for each in sizes.values()))
    )
    teacher, student = (_read(result, roles[role], folders[role], text, pair, limit) for role in roles)
    matched, why = match_layers(result, student=len(student.weights), teacher=len(teacher.weights))
    which = ", the first of its teachers," if result.ensemble else ""
    title = f"{result.recipe.get('title') or result.run}: {result.teacher}{which} and its student"
    texts = (text,) if pair is None else (text, pair)
    return AttentionMaps(title, teacher, student, matched, why, run=result.run, texts=texts)


def _check_texts(run: Path, result: Result, text: str, pair: str | None) -> None:
    for option, value in (("--text", text), ("--pair", pair)):
        if value is None:
            continue
        check_unicode(option, value)
        if not value.strip():
            raise CompressError(f"{option}: expected words, found none")
    columns = setting(run, result, "text", list)
    paired = len(columns) > 1 and not HEADS[result.task.kind].bare
    if paired and pair is None:
        raise CompressError(
            f"--pair: expected the second text, as task {result.task.name} reads {' and '.join(columns)}; found none"
        )
    if pair is not None and not paired:
        raise CompressError(f"--pair: expected none, as models of task {result.task.name} read one text; leave it out")


def _sizes(run: Path, name: str, folder: Path) -> Dimensions:
    config = read_config(folder)
    family = FAMILIES[config["model_type"]]
    if family.layerless:
        raise CompressError(
            f"{run}: {name}: expected a model with attention; {family.title.lower()} models have no layers"
        )
    if not family.attention.readable:
        raise CompressError(
            f"{run}: {name}: expected a model whose attention can be read; that of {family.title} models cannot"
        )
    return dimensions(config, classes=1, folder=folder)


def _read(result: Result, name: str, folder: Path, text: str, pair: str | None, limit: int) -> ModelMaps:
    from ..models.features.attention_weights import attention_weights

    tokenizer = load_tokenizer(folder)
    check_room(tokenizer, limit, pair=pair is not None)
    tokenizer.enable_truncation(limit, strategy="longest_first", direction=truncation_side(tokenizer))
    texts = text if pair is None else (text, pair)
    shorter: Any = Cutter(tokenizer).cut(texts)
    (encoding,) = tokenizer.encode_batch([shorter])
    model: Any = load_classifier(folder, kind=result.task.kind, labels=result.task.labels, trained=True).eval()
    weights = attention_weights(model, encoding.ids, encoding.type_ids)
    if not all(np.isfinite(layer).all() for layer in weights if layer is not None):
        raise CompressError(
            f"{folder}: the attention of {name} is not finite: its weights are damaged; run the recipe again"
        )
    return ModelMaps(name, tuple(encoding.tokens), tuple(weights), cut=bool(encoding.overflowing) or shorter != texts)
