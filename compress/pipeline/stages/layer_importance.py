"""layer_importance: which of the fine-tuned teacher's layers a student is copied from (`init: prune`), judged by the teacher's answers
without the others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from pydantic import TypeAdapter

from ...fields import Positive, Spec
from ...files.atomic import write_text
from ...models.checkpoints.folders import load_classifier, load_tokenizer, pad_id
from ...models.families import FAMILIES
from ...models.heads import HEADS
from ...models.layer_maps import copied_layers
from ...models.sentence_encoders.vector_layers import vector_words
from ...pruning.layers import Round, layers_alone, rounds_to
from ...tasks import TASK_KINDS, Encoded, TaskBatches
from ..plan import TRAINING, Draft, Job, Kind
from ..plan.students import CHOSEN_LAYERS
from .fit_samples import BATCH, first_rows

_ROUNDS = TypeAdapter(list[Round])


class LayerImportance(Spec):
    """`keep`: layers of the student. `max_length`: tokens of a text."""

    keep: Positive
    examples: Positive
    max_length: Positive


class LayerImportanceInfo(TypedDict):
    """`copied_layers`, `dropped`: numbered from 0, the former ascending, the latter in the order in which they were dropped. `alone`:
    divergence of the teacher's answers without each single layer. `copied_divergence`: without all dropped layers; `spaced_divergence`:
    with as many evenly spaced layers. Divergences are means per example, as `FidelityMeasures.divergence` measures them, over `examples` of
    train: for questions their windows, for pairs that have vectors both texts."""

    copied_layers: list[int]
    dropped: list[int]
    alone: dict[str, float]
    copied_divergence: float
    spaced_divergence: float
    examples: int


def layer_importance_inputs(draft: Draft, stage: str) -> dict[str, str]:
    """Add the node for a student that starts from the most important layers and is yet to start, and return it as an input; empty for any
    other student."""
    card = draft.student
    if card is None or card.init != "prune" or "student" in draft.latest:
        return {}
    several = vector_words(draft.teacher.config) if HEADS[draft.task.spec.kind].bare else None
    if several is not None:
        raise draft.fails(
            stage,
            f"student {card.name}: init: prune drops layers one by one, and the vectors of teacher {draft.teacher.card.name} are made of "
            f"{several}; choose a student of `init: copy`",
        )
    spec = LayerImportance(keep=card.layers, examples=card.examples, max_length=draft.task.spec.max_length)
    described, outside = {**spec.model_dump(), "seed": draft.base_seed}, {"data": draft.task.fingerprint}
    inputs = {"teacher": draft.latest["teacher"]}
    name = draft.add(
        LAYER_IMPORTANCE,
        CHOSEN_LAYERS,
        "teacher",
        spec,
        described,
        inputs=inputs,
        outside=outside,
        seed=draft.base_seed,
        stage=stage,
    )
    return {CHOSEN_LAYERS: name}


def run(job: Job[LayerImportance]) -> LayerImportanceInfo:
    """Choose the layers; they are in the returned info, no file is written. Rounds computed before an interruption are reused."""
    from ...models.features.predict import predict_logits
    from ...training import make_accelerator

    context, spec, folder = job.context, job.spec, job.inputs["teacher"].path
    model: Any = load_classifier(folder, kind=context.kind, labels=context.labels, trained=True).eval()
    model.to(make_accelerator(context.precision).device)
    tokenizer, pad, layers = load_tokenizer(folder), pad_id(model.config.to_dict()), job.plan.sizes["teacher"].layers
    examples = _examples(job, context.task.encoded("train", tokenizer, spec.max_length), pad)
    outputs = partial(predict_logits, model, examples, pad)
    whole, done = outputs(), 0
    first, kept_rounds = FAMILIES[model.config.model_type].layers.first_differs, job.work / "rounds.json"
    total = sum(left - first for left in range(spec.keep + 1, layers + 1)) + 1

    def divergence(kept: tuple[int, ...]) -> float:
        nonlocal done
        with layers_alone(model, kept):
            cost = TASK_KINDS[context.kind].fidelity.divergence(whole, outputs())
        done += 1
        context.listener.progress("judging layers", min(done, total), total)
        return max(0.0, cost)  # rounding may make it negative

    rounds = _ROUNDS.validate_json(kept_rounds.read_bytes()) if kept_rounds.is_file() else []
    done = sum(len(each.layers) for each in rounds)
    for new_round in rounds_to(spec.keep, layers, divergence, first=first, before=rounds):
        rounds.append(new_round)
        _write(kept_rounds, rounds)
    spaced = copied_layers("every_other", teacher_layers=layers, student_layers=spec.keep, card=job.node.id)
    dropped = [each.dropped for each in rounds]
    kept = sorted({*range(layers)} - {*dropped})
    info: LayerImportanceInfo = {
        "copied_layers": kept,
        "dropped": dropped,
        "alone": {
            str(layer): cost for each in rounds[:1] for layer, cost in zip(each.layers, each.divergences, strict=True)
        },
        "copied_divergence": min(rounds[-1].divergences) if rounds else 0.0,
        "spaced_divergence": divergence(spaced),
        "examples": len(examples),
    }
    context.notice(
        f"{job.node.id}: the student is copied from teacher layers {kept}, counted from 0; without training their answers diverge from "
        f"the teacher's by {info['copied_divergence']:.3g}, those of evenly spaced layers by {info['spaced_divergence']:.3g}"
    )
    return info


def _examples(job: Job[LayerImportance], train: Encoded, pad: int) -> Encoded:
    """Return the examples that a first epoch begins with; queries and questions are kept whole."""
    data = TaskBatches(train, batch_size=BATCH, pad_id=pad, seed=job.node.seed)
    indices = first_rows(data, job.spec.examples)
    return train.take(indices if data.groups(indices) is not None else indices[: job.spec.examples])


def _write(path: Path, rounds: list[Round]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, _ROUNDS.dump_json(rounds).decode())


LAYER_IMPORTANCE = Kind(CHOSEN_LAYERS, 1, LayerImportance, run=run, libraries=TRAINING)
