"""Measurements -> a result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from ... import results, store
from ...fields import Spec
from ...files.paths import with_display_paths
from ...machine import versions
from ...provenance import Code, recorded_code, running_code
from ...results import Machine
from ...results.fidelity import Delta, Disagreement, EntityScore, Fidelity
from ...results.similarity import LayerSimilarity
from ...stats import significance
from ...store import Artifact
from ...tasks import (
    TASK_KINDS,
    ReportedData,
    dataset_id,
    headline,
    headline_of,
    reported_gold,
    reported_scores,
    split_fingerprint,
)
from ..plan import Context, Node, Plan
from ..plan.changed import checkpoint_sizes
from ..plan.teachers import TeacherSource
from .ensemble import ensemble_score
from .fidelity import disagreements, fidelity, reliability_bins
from .measure import BenchSettings, Model
from .pruning import pruning_records
from .reported import ReportedSource
from .resolved import resolved_recipe, stage_settings, student_card
from .truncation import truncation_counts
from .vocabulary import vocabulary_record

Predictions = dict[str, dict[str, np.ndarray]]
BENCH = "bench"
_PER_TOKEN_LENGTH = 128


# Bump when the same measurements make another result: other statistics, other fields.
RESULT_VERSION = 13


def result_key(plan: Plan) -> str:
    """Key of what a result contains besides its measurements: the cards, the task, the version of the code that assembles it."""
    cards = {
        "recipe": plan.recipe.model_dump(mode="json"),
        "teacher": plan.teacher.card.model_dump(mode="json"),
        "student": plan.student.model_dump(mode="json") if plan.student else None,
        "task": plan.task.spec.model_dump(mode="json"),
    }
    if plan.others:
        cards["others"] = [other.card.model_dump(mode="json") for other in plan.others]
    return store.key("result", RESULT_VERSION, cards, {}, {"bert-compress": versions()["bert-compress"]})


@dataclass(frozen=True)
class RunOutputs:
    """All that a run made and measured. `reported`: the splits it was measured on; `measured`: a model's label, or `BENCH` -> the
    measurement's artefact."""

    reported: ReportedSource
    artifacts: dict[str, Artifact]
    cached: dict[str, bool]
    models: list[Model]
    logits: Predictions
    runtimes: dict[str, results.Runtime]
    measured: dict[str, Artifact]
    measurements: list[str]
    similarity: LayerSimilarity | None

    @cached_property
    def gold(self) -> dict[str, np.ndarray]:
        """The gold labels of what scores are reported on."""
        return reported_gold(self.reported.data)

    def measured_by(self, name: str) -> Code | None:
        """The code that scored the model `name`, or measured the latencies (`BENCH`), possibly in an earlier run."""
        return recorded_code(self.measured[name].describe) if name in self.measured else None


def build_result(
    plan: Plan, context: Context, outputs: RunOutputs, settings: BenchSettings | None, command: str
) -> results.Result:
    """Everything a reader needs to trust the run, in one object."""
    data = context.task.data
    records = [_model_result(plan, context, model, outputs) for model in outputs.models]
    again = outputs.runtimes.get("baseline again")
    return results.Result(
        run=plan.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        recipe=with_display_paths(resolved_recipe(plan)),
        teacher=plan.teacher.card.name,
        student=plan.student.name if plan.student else None,
        student_card=student_card(plan),
        seed=plan.seed,
        task=task_info(plan, context, outputs.reported),
        machine=Machine.here(),
        versions=versions(),
        code=running_code(),
        origin=plan.teacher.origin,
        student_origin=plan.pretrained.origin if plan.pretrained is not None else None,
        ensemble=ensemble_score(plan, context, outputs.artifacts, outputs.logits, outputs.reported.data),
        vocabulary=vocabulary_record(plan, outputs.artifacts, outputs.models, outputs.reported.data.splits),
        pruning=pruning_records(plan, outputs.artifacts),
        similarity=outputs.similarity,
        corpus=plan.corpus.record if plan.corpus and any(node.kind.reads_text for node in plan.nodes) else None,
        stages=tuple(_stage_record(node, outputs) for node in plan.nodes),
        models=tuple(records),
        noise=again.latency if again else (),
        timed_by=outputs.measured_by(BENCH),
        settings={
            "precision": context.precision,
            "threads": context.threads,
            "base_seed": plan.base_seed,
            "bench": {"runs": settings.runs, "warmup": settings.warmup, "threads": settings.threads}
            if settings
            else None,
            "tuning_examples": len(data.tuning),
            "measurements": outputs.measurements,
            "notices": list(context.notices),
            "published": _published_scores(plan, context),
            "teacher_licence": plan.teacher.card.licence,
            "teacher_hub": _hub(plan.teacher),
            **_of_own_checkpoint(plan),
            "dataset_hub": dataset_id(data.spec, plan.task.folder),
            "max_length": data.spec.max_length,
            "text": list(data.spec.text),
        },
    )


def _hub(source: TeacherSource) -> str | None:
    return source.card.checkpoint.hub if source.card.checkpoint else None


def _of_own_checkpoint(plan: Plan) -> dict[str, Any]:
    """Licence and hub repository of the weights of a student that does not start from its teacher."""
    source = plan.pretrained
    return {} if source is None else {"student_licence": source.card.licence, "student_hub": _hub(source)}


def _stage_record(node: Node[Spec], outputs: RunOutputs) -> results.StageRecord:
    artifact = outputs.artifacts[node.id]
    return results.StageRecord(
        kind=node.label,
        key=node.key,
        cached=outputs.cached[node.id],
        seconds=artifact.seconds,
        info=with_display_paths({**stage_settings(node), **artifact.info}),
        code=recorded_code(artifact.describe),
    )


def task_info(plan: Plan, context: Context, reported: ReportedSource) -> results.TaskInfo:
    data, spec = context.task.data, context.task.data.spec
    rows = {"train": len(data.train), "tuning": len(data.tuning)}
    rows |= {name: len(split) for name, split in reported.data.splits.items()}
    return results.TaskInfo(
        name=spec.name,
        title=spec.title or spec.name,
        kind=spec.kind,
        labels=data.labels,
        metrics=spec.metrics,
        splits=reported.data.names,
        headline=spec.headline,
        unanswerable=data.train.unanswerable,
        positive=spec.positive or (data.labels[-1] if spec.kind == "classification" else None),
        data=results.Data(
            source=data.source,
            rows=rows,
            notes=(*data.notes, *truncation_counts(plan, reported), reported.nearness(data)),
            fingerprint=data.fingerprint,
            tuning=split_fingerprint(data.tuning),
        ),
    )


def _published_scores(plan: Plan, context: Context) -> dict[str, float]:
    task = context.task.spec.name
    return {source: scores[task] for source, scores in plan.teacher.card.published.items() if task in scores}


def _model_result(plan: Plan, context: Context, model: Model, outputs: RunOutputs) -> results.ModelResult:
    baseline, logits = outputs.models[0], outputs.logits
    data, sizes = outputs.reported.data, checkpoint_sizes(plan, model.name, model.checkpoint.path)
    model_logits = logits[model.label]
    scores, first = reported_scores(data, model_logits, outputs.gold), data.first
    length = _mean_length(model, context)
    return results.ModelResult(
        name=model.name,
        precision=model.precision,  # type: ignore[arg-type]
        architecture=str(sizes),
        parameters=sizes.parameters,
        embedding_parameters=sizes.embedding_parameters,
        flops_per_token=round(sizes.flops_per_token(_PER_TOKEN_LENGTH)),
        flops_per_example=round(sizes.flops_per_example(length)),
        file_bytes=model.onnx.stat().st_size,
        scores=scores,
        headline=headline(scores[first]),
        types=_types(data, outputs.gold[first], model_logits[first]),
        delta=None if model is baseline else _delta(outputs, logits[baseline.label][first], model_logits[first]),
        reliability=reliability_bins(model_logits[first], outputs.gold[first], TASK_KINDS[data.spec.kind]),
        disagreements=_disagreements(outputs, model),
        predictions=model.label,
        onnx=outputs.runtimes.get(model.label),
        torch_eager=outputs.runtimes.get(f"{model.name}-torch") if model.precision == "fp32" else None,
        fidelity=_fidelity(outputs, model),
        info=outputs.artifacts[model.label].info,
        code=outputs.measured_by(model.label),
    )


def _types(data: ReportedData, gold: np.ndarray, logits: np.ndarray) -> dict[str, EntityScore]:
    scores = TASK_KINDS[data.spec.kind].scoring.entity_types(logits, gold, data.labels, data.spec.metrics)
    return {name: EntityScore(**vars(each)) for name, each in scores.items()}


def _disagreements(outputs: RunOutputs, model: Model) -> tuple[Disagreement, ...]:
    """Disagreements with the baseline; none for a quantized model, which is compared with its own fp32 model."""
    if model is outputs.models[0] or model.precision != "fp32":
        return ()
    data = outputs.reported.data
    teacher_logits, model_logits = (outputs.logits[each.label][data.first] for each in (outputs.models[0], model))
    return disagreements(
        teacher_logits, model_logits, outputs.gold[data.first], data.labels, TASK_KINDS[data.spec.kind]
    )


def _fidelity(outputs: RunOutputs, model: Model) -> Fidelity | None:
    """Compare a quantized model with the fp32 file of the same checkpoint, which it is made from."""
    if model.precision == "fp32":
        return None
    data, reference = outputs.reported.data, f"{model.name}-fp32"
    fp32, int8 = (outputs.logits[label][data.first] for label in (reference, model.label))
    against = {"reference": reference, "split": data.first, "delta": _delta(outputs, fp32, int8)}
    return fidelity(fp32, int8, outputs.gold[data.first], data.labels, kind=TASK_KINDS[data.spec.kind], **against)


def _mean_length(model: Model, context: Context) -> float:
    from ...models.checkpoints.folders import load_tokenizer

    tokenizer = load_tokenizer(model.checkpoint.path)
    return float(context.task.encoded("tuning", tokenizer, context.task.spec.max_length).lengths.mean())


def _delta(outputs: RunOutputs, base: np.ndarray, other: np.ndarray) -> Delta:
    """The difference in the headline score."""
    data = outputs.reported.data
    metric = headline_of(data.spec, data.labels, sizes=data.sizes(data.first))
    return significance.delta(metric, base, other, outputs.gold[data.first])
