"""Several teachers on the reported split: each alone, and all as one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ... import store
from ...fields import Spec
from ...machine import versions
from ...models.checkpoints.folders import load_classifier, load_tokenizer, pad_id
from ...provenance import manifest_fields
from ...results.teachers import EnsembleScore, TeacherScore
from ...runtime.passages import THRESHOLD
from ...spec.kinds import KINDS
from ...store import Artifact, Store
from ...tasks import (
    TASK_KINDS,
    EncodedSpans,
    ReportedData,
    divide_by_temperature,
    gold_of,
    headline,
    score,
    span_tables,
)
from ...tasks.ensembles import mean_of_log_probabilities
from ..plan import TRAINING, Context, Node, Plan
from ..plan.teachers import ENSEMBLE, TeacherSource, names_of
from .reported import ReportedSource

VERSION = 1
Scored = tuple[Artifact, dict[str, np.ndarray]]
Logits = dict[str, dict[str, np.ndarray]]


def teacher_predictions(
    plan: Plan, artifacts: dict[str, Artifact], reported: ReportedSource, context: Context, cache: Store
) -> dict[str, Scored]:
    """Return, for the teachers besides the first, and on questions for the ensemble, whose answers are none of its teachers': the
    measurement, and reported split -> float32 logits [example, class], in file order.

    They run in PyTorch: none of them is exported.
    """
    others = list(plan.teachers)[1:]
    predictions = {model: _predictions(model, artifacts[model], reported, context, cache) for model in others}
    node = _ensemble(plan)
    if node is not None and KINDS[context.kind].unit == "question":
        predictions[ENSEMBLE] = _windows_predictions(plan, node, artifacts, reported, context, cache)
    return predictions


def _predictions(model: str, checkpoint: Artifact, reported: ReportedSource, context: Context, cache: Store) -> Scored:
    def predicted() -> dict[str, np.ndarray]:
        from ...models.features.predict import predict_logits

        classifier, pad = _load_model(checkpoint, context)
        tokenizer, length = load_tokenizer(checkpoint.path), reported.spec.max_length
        return {
            split: predict_logits(classifier, reported.encoded(split, tokenizer, length), pad)
            for split in reported.data.splits
        }

    return _store_predictions(model, checkpoint.key, predicted, reported, context, cache)


def _windows_predictions(
    plan: Plan,
    node: Node[Spec],
    artifacts: dict[str, Artifact],
    reported: ReportedSource,
    context: Context,
    cache: Store,
) -> Scored:
    """For questions: the likeliest answers by the mean distributions in the student's windows."""
    student, length = plan.source("student"), reported.spec.max_length
    infos, threshold = _infos(plan, node, artifacts), artifacts[node.id].info.get(THRESHOLD, 0.0)

    def says(model: str, windows: EncodedSpans) -> np.ndarray:
        """Return one teacher's calibrated logits (`span_tables`)."""
        from ...models.features.predict import put_token_logits

        (reader, pad), teacher = _load_model(artifacts[model], context), plan.teachers[model]
        parts = None if teacher.shares_tokenizer(student) else teacher.parts_of(windows, length)
        table = np.zeros((int(windows.starts[-1]), 2), np.float32)
        put_token_logits(table, reader, windows, pad, parts=parts)
        span_tables.calibrate(table, windows, infos[model]["temperature"])
        return table

    def predicted() -> dict[str, np.ndarray]:
        answers: dict[str, np.ndarray] = {}
        for split in reported.data.splits:
            windows: Any = reported.encoded(split, student.tokenizer, length)
            table = mean_of_log_probabilities([says(model, windows) for model in plan.teachers])
            answers[split] = windows.decided(span_tables.collect_outputs(table, windows), threshold)
        return answers

    return _store_predictions(ENSEMBLE, artifacts[node.id].key, predicted, reported, context, cache)


def _load_model(checkpoint: Artifact, context: Context) -> tuple[Any, int]:
    """Return the model, and the id of its padding token."""
    model: Any = load_classifier(checkpoint.path, kind=context.kind, labels=context.labels, trained=True)
    return model, pad_id(model.config.to_dict())


def _store_predictions(
    model: str,
    model_key: str,
    predicted: Callable[[], dict[str, np.ndarray]],
    reported: ReportedSource,
    context: Context,
    cache: Store,
) -> Scored:
    """Return the outputs of `predicted` for each reported split, stored under a key of `model_key`, the key of the model that predicts."""
    libraries = {name: versions()[name] for name in TRAINING}
    key = store.key("evaluate-torch", VERSION, {}, {"model": model_key, "data": reported.fingerprint}, libraries)

    def make(out: Path, work: Path) -> dict[str, Any]:
        arrays = {f"split/{split}": outputs for split, outputs in predicted().items()}
        np.savez(out / "predictions.npz", allow_pickle=False, **arrays)
        return {"splits": list(reported.data.splits)}

    label = f"evaluate {model}"
    context.listener.stage(label, cache.find(key) is not None)
    artifact = cache.build(key, make, describe=manifest_fields("evaluate-torch", label))
    with np.load(artifact.path / "predictions.npz", allow_pickle=False) as file:
        return artifact, {split: file[f"split/{split}"] for split in artifact.info["splits"]}


def ensemble_score(
    plan: Plan, context: Context, artifacts: dict[str, Artifact], logits: Logits, data: ReportedData
) -> EnsembleScore | None:
    """Return the scores of several teachers. Adds the ensemble's outputs to `logits`, if they are not there: the logarithms of mean
    probabilities."""
    ensemble, node = TASK_KINDS[context.kind].ensemble, _ensemble(plan)
    if node is None or ensemble is None:
        return None
    infos = _infos(plan, node, artifacts)
    if ENSEMBLE not in logits:
        arrays = {model: logits[_array(model)] for model in plan.teachers}
        logits[ENSEMBLE] = {
            split: ensemble.mean(
                [divide_by_temperature(arrays[model][split], infos[model]["temperature"]) for model in plan.teachers]
            )
            for split in data.splits
        }
    names = names_of(plan.teachers)
    teachers = tuple(
        TeacherScore(
            name=names[model],
            **_score_fields(infos[model], _array(model), logits, data),
            **_source_fields(source, infos[model]["temperature"]),
        )
        for model, source in plan.teachers.items()
    )
    return EnsembleScore(teachers=teachers, **_score_fields(artifacts[node.id].info, ENSEMBLE, logits, data))


def _ensemble(plan: Plan) -> Node[Spec] | None:
    """Return the last node that makes the mean."""
    return next((node for node in reversed(plan.nodes) if node.model == ENSEMBLE), None)


def _infos(plan: Plan, node: Node[Spec], artifacts: dict[str, Artifact]) -> dict[str, dict[str, Any]]:
    """Return teacher -> info of its answers, from which the mean is made."""
    infos = {artifacts[name].key: artifacts[name].info for name in node.inputs.values()}
    return {other.model: infos[other.key] for other in plan.nodes if other.key in infos}


def _array(model: str) -> str:
    """Name of a teacher's predictions: the first teacher is the baseline, and is measured as that."""
    return "teacher-fp32" if model == "teacher" else model


def _score_fields(info: dict[str, Any], name: str, logits: Logits, data: ReportedData) -> dict[str, Any]:
    """Return the fields that a teacher and the ensemble share."""
    scores = {
        split: score(data.spec, data.labels, array, gold_of(data.spec, data.splits[split]))
        for split, array in logits[name].items()
    }
    points = {"tuning_score": info["tuning_score"], "headline": headline(scores[data.first])}
    return {**points, "scores": scores, "predictions": name}


def _source_fields(source: TeacherSource, temperature: float | None) -> dict[str, Any]:
    card = source.card
    hub = card.checkpoint.hub if card.checkpoint else None
    return {"temperature": temperature, "licence": card.licence, "hub": hub, "origin": source.origin}
