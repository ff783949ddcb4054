"""Several teachers on the reported split: each alone, and all as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ... import store
from ...machine import versions
from ...models.checkpoints import load_classifier, load_tokenizer, pad_id
from ...provenance import manifest_fields
from ...recorded_teachers import EnsembleScore, TeacherScore
from ...store import Artifact, Store
from ...tasks import TASK_KINDS, ReportedData, divided, gold_of, headline, score
from ..plan import TRAINING, Context, Plan
from ..plan.teachers import ENSEMBLE, TeacherSource, names_of
from .reported import ReportedSource

VERSION = 1
Scored = tuple[Artifact, dict[str, np.ndarray]]
Logits = dict[str, dict[str, np.ndarray]]


def teacher_predictions(
    plan: Plan, artifacts: dict[str, Artifact], reported: ReportedSource, context: Context, cache: Store
) -> dict[str, Scored]:
    """The teachers beside the first -> the measurement, and reported split -> float32 logits [example, class], in file order.

    Through PyTorch: nothing of them is exported."""
    others = list(plan.teachers)[1:]
    return {model: _predictions(model, artifacts[model], reported, context, cache) for model in others}


def _predictions(model: str, checkpoint: Artifact, reported: ReportedSource, context: Context, cache: Store) -> Scored:
    libraries = {name: versions()[name] for name in TRAINING}
    inputs = {"model": checkpoint.key, "data": reported.fingerprint}
    key = store.key("evaluate-torch", VERSION, {}, inputs, libraries)

    def make(out: Path, work: Path) -> dict[str, Any]:
        from ...models.predict import predict_logits

        folder, length = checkpoint.path, reported.spec.max_length
        classifier: Any = load_classifier(folder, kind=context.kind, labels=context.labels, trained=True)
        tokenizer, pad = load_tokenizer(folder), pad_id(classifier.config.to_dict())
        found = {
            f"split/{split}": predict_logits(classifier, reported.encoded(split, tokenizer, length), pad)
            for split in reported.data.splits
        }
        np.savez(out / "predictions.npz", allow_pickle=False, **found)
        return {"splits": list(reported.data.splits)}

    label = f"evaluate {model}"
    context.listener.stage(label, cache.find(key) is not None)
    artifact = cache.build(key, make, describe=manifest_fields("evaluate-torch", label))
    with np.load(artifact.path / "predictions.npz", allow_pickle=False) as file:
        return artifact, {split: file[f"split/{split}"] for split in artifact.info["splits"]}


def ensemble_score(
    plan: Plan, context: Context, artifacts: dict[str, Artifact], logits: Logits, data: ReportedData
) -> EnsembleScore | None:
    """What results say of several teachers. Adds the ensemble's own to `logits`: its logarithms of mean probabilities."""
    mean = TASK_KINDS[context.kind].mean
    node = next((node for node in reversed(plan.nodes) if node.model == ENSEMBLE), None)
    if node is None or mean is None:
        return None
    made = {artifacts[name].key: artifacts[name].info for name in node.inputs.values()}
    infos = {other.model: made[other.key] for other in plan.nodes if other.key in made}
    arrays = {model: logits[_array(model)] for model in plan.teachers}
    logits[ENSEMBLE] = {
        split: mean([divided(arrays[model][split], infos[model]["temperature"]) for model in plan.teachers])
        for split in data.splits
    }
    names = names_of(plan.teachers)
    teachers = tuple(
        TeacherScore(
            name=names[model],
            **_scored(infos[model], _array(model), logits, data),
            **_known(source, infos[model]["temperature"]),
        )
        for model, source in plan.teachers.items()
    )
    return EnsembleScore(teachers=teachers, **_scored(artifacts[node.id].info, ENSEMBLE, logits, data))


def _array(model: str) -> str:
    """The first teacher is the baseline, and measured as that."""
    return "teacher-fp32" if model == "teacher" else model


def _scored(info: dict[str, Any], name: str, logits: Logits, data: ReportedData) -> dict[str, Any]:
    """The fields that a teacher and the ensemble share."""
    scores = {
        split: score(data.spec, data.labels, array, gold_of(data.spec, data.splits[split]))
        for split, array in logits[name].items()
    }
    points = {"tuning_score": info["tuning_score"], "headline": headline(scores[data.first])}
    return {**points, "scores": scores, "predictions": name}


def _known(source: TeacherSource, temperature: float | None) -> dict[str, Any]:
    card = source.card
    hub = card.checkpoint.hub if card.checkpoint else None
    return {"temperature": temperature, "licence": card.licence, "hub": hub, "origin": source.origin}
