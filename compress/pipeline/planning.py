"""What each kind of stage adds to a plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import store
from ..errors import CompressError
from ..machine import cpu_name, isa, versions
from ..models.layer_maps import check_losses, matched_layers
from ..models.masked_lm import has_masked_lm_head
from ..models.students import CONVERSION
from ..spec.losses import OF_TEXT, BlockSpread
from ..spec.quantization import INC, SEARCHED
from ..spec.recipe import Stage
from ..spec.stages import Augment, Distill, Export, Finetune, Losses, PerTask
from .aware_planning import calibrated_on, plan_quantize_aware
from .draft import PRETRAINED, Draft
from .teachers import resolve_teacher

READS_TEXT = ("pretrain", "masked_lm", "general")  # kinds of stages
_WITHOUT_TEXT = "no plain text was given; say --corpus PATH"


def plan_teacher(draft: Draft, refit: bool) -> None:
    """The teacher first: fine-tuned here, or taken as it is. Its fp32 ONNX is every run's baseline."""
    teacher = draft.teacher
    written = next((stage.spec for stage in draft.recipe.stages if stage.kind == "finetune"), None)
    outside = {"teacher": teacher.identity, "data": draft.task.fingerprint}
    _add_pretrain(draft, refit)
    if teacher.fine_tuned and not refit:
        draft.add("adopt", "teacher", "teacher", None, {}, outside=outside)
    elif written is None:
        raise draft.fails(
            "finetune",
            f"is not in the recipe, and teacher {teacher.card.name} is not fine-tuned: add `- finetune` to its stages, "
            "or give a fine-tuned checkpoint with --teacher DIR",
        )
    else:
        training = _for_task(draft, (teacher.card.finetune, written), Finetune)
        described = _seeded(draft, training, draft.base_seed)
        draft.add(
            "finetune",
            "teacher",
            "teacher",
            training,
            described,
            inputs=_pretrained(draft),
            outside=outside,
            seed=draft.base_seed,
        )
    draft.latest["teacher"] = "teacher"
    export = next(stage.spec for stage in draft.recipe.stages if stage.kind == "export")
    _add_export(draft, export)


def _add_pretrain(draft: Draft, refit: bool) -> None:
    """The teacher itself on plain text, where the recipe says so and there is text."""
    stage = next((stage for stage in draft.recipe.stages if stage.kind == "pretrain"), None)
    if stage is None or stage.spec.enabled is False:
        return
    spec, card = stage.spec, draft.teacher.card
    if draft.corpus is None:
        if spec.enabled is True:
            raise draft.fails(stage.id, f"{_WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false")
        draft.notes.append(f"{stage.id} is left out: {_WITHOUT_TEXT}")
        return
    if draft.teacher.fine_tuned and not refit:
        raise draft.fails(
            stage.id, f"teacher {card.name} is fine-tuned already; say --refit to train it on text and then on the task"
        )
    sizes = draft.sizes["teacher"]
    where = f"recipe {draft.recipe.name}, stage {stage.id}, teacher {card.name}"
    check_losses(spec.losses, student=sizes, teacher=sizes, where=where)
    described = _seeded(draft, spec, draft.base_seed)
    inputs, outside = {"text": _add_text(draft, spec.max_tokens)}, {"teacher": draft.teacher.identity}
    draft.add("pretrain", PRETRAINED, "teacher", spec, described, inputs=inputs, outside=outside, seed=draft.base_seed)


def _pretrained(draft: Draft) -> dict[str, str]:
    """What a stage that reads the teacher before its fine-tuning takes it from, where that is not its own checkpoint."""
    return {PRETRAINED: PRETRAINED} if draft.has(PRETRAINED) else {}


def _knows_nothing(draft: Draft) -> bool:
    """Whether the teacher, before its fine-tuning, has random weights."""
    return draft.teacher.folder is None and not draft.has(PRETRAINED)


def _has_head(draft: Draft) -> bool:
    """Whether the teacher, before its fine-tuning, is a masked language model."""
    if draft.has(PRETRAINED):
        spec = next(node.spec for node in draft.nodes if node.id == PRETRAINED)
        return any(loss.name == "masked_lm" and loss.weight > 0 for loss in spec.losses)
    return draft.teacher.folder is not None and has_masked_lm_head(draft.teacher.folder)


def _for_task(draft: Draft, layers: tuple[PerTask, ...], model: type[Any]) -> Any:
    """Fields of `layers`, later over earlier, those of the task over the rest; the model's defaults below."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer.for_task(draft.task.spec.name)
    if "max_length" in model.model_fields:
        merged = {"max_length": draft.task.spec.max_length, **merged}
    return model.model_validate(merged)


def _seeded(draft: Draft, spec: Any, seed: int) -> dict[str, Any]:
    return {**spec.model_dump(mode="json", exclude={"per_task"}), "seed": seed, "precision": draft.precision}


def _card(draft: Draft) -> dict[str, Any]:
    """What keys hold of the student: its card, and how a conversion is computed."""
    if draft.student is None:
        return {}
    conversion = {"conversion": CONVERSION} if draft.student.init == "convert" else {}
    return {"student": draft.student.model_dump(mode="json", exclude={"title"}), **conversion}


def _planned_with_the_teacher(draft: Draft, stage: Stage) -> None:
    """`plan_teacher` comes first."""


def _plan_masked_lm(draft: Draft, stage: Stage) -> None:
    """Only where the augmentation has a use for it: the teacher has no head of its own."""
    spec = stage.spec
    if spec.enabled == "auto" and (draft.corpus is None or not _wants_head(draft)):
        return
    if draft.corpus is None:
        raise draft.fails(stage.id, f"{_WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false")
    if _knows_nothing(draft):
        raise draft.fails(stage.id, f"teacher {draft.teacher.card.name} has random weights, which know no words")
    inputs = {"text": _add_text(draft, spec.max_tokens)} | _pretrained(draft)
    described = _seeded(draft, spec, draft.base_seed)
    outside = {"teacher": draft.teacher.identity}
    draft.add(
        "masked_lm",
        "masked-lm",
        "teacher-masked-lm",
        spec,
        described,
        inputs=inputs,
        outside=outside,
        seed=draft.base_seed,
    )


def _wants_head(draft: Draft) -> bool:
    augment = _augmentation(draft)
    if augment is None or augment.source == "embedding" or augment.masked_lm is not None:
        return False
    return not _knows_nothing(draft) and not _has_head(draft)


def _augmentation(draft: Draft) -> Augment | None:
    specs = (stage.spec for stage in draft.recipe.stages if stage.kind == "augment" and stage.spec.enabled)
    found = next(specs, None)
    return None if found is None else _for_task(draft, (found,), Augment)


def _add_text(draft: Draft, max_tokens: int | None) -> str:
    """The text in tokens of the teacher's vocabulary; stages that read as much of it share it."""
    name = f"text-{max_tokens}" if max_tokens else "text"
    if draft.corpus is not None and not draft.has(name):
        outside = {"text": draft.corpus.fingerprint, "teacher": draft.teacher.identity}
        draft.add("tokenize", name, "text", max_tokens, {"max_tokens": max_tokens}, outside=outside, seed=0)
    return name


def _plan_general(draft: Draft, stage: Stage) -> None:
    spec, teacher = stage.spec, draft.teacher
    if _knows_nothing(draft):
        problem = (
            f"teacher {teacher.card.name} has random weights before its fine-tuning: there is nothing to learn from it"
        )
    elif draft.corpus is None:
        problem = f"{_WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false"
    else:
        _add_general(draft, stage)
        return
    if spec.enabled is True:
        raise draft.fails(stage.id, problem)
    draft.notes.append(f"{stage.id} distillation is left out: {problem.split(', or')[0]}")


def _add_general(draft: Draft, stage: Stage) -> None:
    spec = stage.spec
    if _pull(spec) is not None:
        raise draft.fails(stage.id, "block_spread compares blocks that only a distill stage with `untied: true` has")
    if draft.teacher.fine_tuned and any(loss.weight > 0 and loss.name not in OF_TEXT for loss in spec.losses):
        draft.notes.append(f"{stage.id} distillation learns from the fine-tuned teacher: no other was given")
    _check_losses(draft, spec, stage.id)
    described = _seeded(draft, spec, draft.base_seed) | _card(draft)
    inputs = {"text": _add_text(draft, spec.max_tokens)} | _pretrained(draft)
    outside = {"teacher": draft.teacher.identity}
    draft.add(
        "general",
        "encoder",
        "encoder",
        spec,
        described,
        inputs=inputs,
        outside=outside,
        seed=draft.base_seed,
        stage=stage.id,
    )


def _plan_augment(draft: Draft, stage: Stage) -> None:
    spec = _for_task(draft, (stage.spec,), Augment)
    source, inputs, outside = _candidates(draft, spec, stage.id)
    unused = {"masked_lm": None} if source == "embedding" else {}  # a resolved recipe names only what it uses
    spec = spec.model_copy(update={"source": source, **unused})
    described = spec.model_dump(mode="json", exclude={"per_task", "glove", "masked_lm"}) | {"seed": draft.base_seed}
    outside |= {"teacher": draft.teacher.identity, "data": draft.task.fingerprint}
    inputs |= (
        {"teacher": "teacher"} if _knows_nothing(draft) else _pretrained(draft)
    )  # of random weights: its trained table
    draft.add(
        "augment", "augmented", "augmented", spec, described, inputs=inputs, outside=outside, seed=draft.base_seed
    )


def _candidates(draft: Draft, spec: Augment, stage: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Where the candidates of single-piece words come from: (source, inputs, hashes of what is outside)."""
    outside = {"glove": store.hash_file(Path(spec.glove).expanduser())} if spec.glove else {}
    if spec.source == "embedding":
        return "embedding", {}, outside
    if spec.masked_lm is not None:
        other = resolve_teacher(spec.masked_lm)
        if other.folder is None or not has_masked_lm_head(other.folder):
            raise draft.fails(stage, f"masked_lm: {spec.masked_lm} has no masked-LM head")
        return "masked_lm", {}, outside | {"masked_lm": other.identity}
    if draft.has("masked-lm"):
        return "masked_lm", {"masked_lm": "masked-lm"}, outside
    if _has_head(draft):
        return "masked_lm", {}, outside
    lacking = f"teacher {draft.teacher.card.name} has no masked-LM head"
    if spec.source == "masked_lm":
        raise draft.fails(
            stage, f"{lacking}: give plain text to train one on (--corpus PATH), or name a card with `masked_lm`"
        )
    draft.notes.append(f"{stage}: {lacking} and none was trained; all candidates are neighbours in the embedding table")
    return "embedding", {}, outside


def _plan_distill(draft: Draft, stage: Stage) -> None:
    card = draft.teacher.card
    training = _for_task(draft, (card.finetune, card.distill, stage.spec), Distill)
    _check_losses(draft, training, stage.id)
    _check_blocks(draft, training, stage)
    name = "student" if stage.id == "distill" else stage.id
    inputs = {"teacher": draft.latest["teacher"]}
    inputs |= {"student": draft.latest["student"]} if "student" in draft.latest else {}
    inputs |= {"encoder": "encoder"} if draft.has("encoder") and "student" not in draft.latest else {}
    inputs |= {"augmented": "augmented"} if draft.has("augmented") else {}
    described = _seeded(draft, training, draft.seed) | _card(draft)
    outside = {"data": draft.task.fingerprint}
    draft.add("distill", name, "student", training, described, inputs=inputs, outside=outside, stage=stage.id)
    draft.latest["student"] = name
    draft.current, draft.untied = "student", training.untied


def _check_blocks(draft: Draft, spec: Distill, stage: Stage) -> None:
    """An untied ALBERT is trained before one that shares, and only there its blocks can be pulled together."""
    card, pull = draft.student, _pull(spec)
    if pull is not None and not spec.untied:
        raise draft.fails(stage.id, "block_spread compares blocks that `untied: true` gives; say both or neither")
    if not spec.untied or card is None:
        return
    if card.albert is None or card.albert.share != "all":
        raise draft.fails(stage.id, f"untied: student {card.name} is no ALBERT with `share: all`; leave it out")
    if pull is not None and pull.groups != card.albert.groups:
        raise draft.fails(
            stage.id, f"block_spread: groups is {pull.groups}, and student {card.name} has {card.albert.groups}"
        )
    if draft.has("encoder") or ("student" in draft.latest and not draft.untied):
        raise draft.fails(
            stage.id,
            "untied: a stage before it shares the blocks already; put untied stages first, without a general stage",
        )
    if stage is [each for each in draft.recipe.stages if each.kind == "distill" and each.spec.enabled][-1]:
        raise draft.fails(stage.id, "untied: the last distill stage must share the blocks; add one after it")


def _pull(spec: Losses) -> BlockSpread | None:
    return next((loss for loss in spec.losses if isinstance(loss, BlockSpread) and loss.weight > 0), None)


def _check_losses(draft: Draft, spec: Any, stage: str) -> None:
    teacher, student = draft.sizes["teacher"], draft.sizes["student"]
    where = f"recipe {draft.recipe.name}, stage {stage}, student {draft.student.name if draft.student else ''}"
    check_losses(spec.losses, student=student, teacher=teacher, where=where)
    try:
        matched_layers(spec, student_layers=student.layers, teacher_layers=teacher.layers)
    except CompressError as error:
        raise draft.fails(stage, str(error)) from None


def _plan_export(draft: Draft, stage: Stage) -> None:
    if draft.student is not None and "student" not in draft.latest:
        raise draft.fails(stage.id, "every distill stage is switched off, so there is no student; leave one on")
    _add_export(draft, stage.spec)


def _add_export(draft: Draft, spec: Export) -> None:
    model = draft.current
    described = {**spec.model_dump(mode="json"), "task": draft.task.spec.name}
    draft.add("export", f"{model}-fp32", model, spec, described, inputs={model: draft.latest[model]})


def _plan_quantize(draft: Draft, stage: Stage) -> None:
    model = draft.current
    inputs = {model: draft.latest[model], f"{model}-fp32": f"{model}-fp32"}
    for precision in stage.spec.precisions:
        layout = stage.spec.layout(precision)
        read = calibrated_on(draft, stage.spec) if stage.spec.calibrates(layout) else {}
        described = stage.spec.form(precision).described(layout)
        described |= {"precision": precision} if precision == "avx2" else {}  # its file has a name of its own
        described |= {"libraries": _of_inc()} if described.get("method") == INC else {}
        # A search goes by what this CPU answers; `auto` also by how fast.
        described |= {"isa": list(isa())} if described.get("method") in SEARCHED else {}
        described |= {"cpu": cpu_name()} if described.get("method") == "auto" else {}
        draft.add("quantize", f"{model}-{precision}", model, stage.spec, described, inputs=inputs, outside=read)


def _of_inc() -> dict[str, str]:
    return {name: version for name, version in versions().items() if name in ("torch", "neural-compressor", "torchao")}


PLANNERS: dict[str, Callable[[Draft, Stage], None]] = {
    "pretrain": _planned_with_the_teacher,
    "finetune": _planned_with_the_teacher,
    "masked_lm": _plan_masked_lm,
    "general": _plan_general,
    "augment": _plan_augment,
    "distill": _plan_distill,
    "quantize_aware": plan_quantize_aware,
    "export": _plan_export,
    "quantize": _plan_quantize,
}
