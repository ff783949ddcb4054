"""The output of `plan`, as a document and as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.layer_maps import copied_layers, matched_layers
from ..pipeline.data_notes import data_notes
from ..pipeline.estimate import data_line, estimate
from ..pipeline.plan.changed import checkpoint_sizes
from ..pipeline.plan.students import CHOSEN_LAYERS
from ..pipeline.plan.teachers import names_of
from ..pipeline.preflight import check_at_hand
from ..pipeline.stages.pretrain import uses_cooccurrence_init
from ..pipeline.training.log import saved_step
from ..quantize.methods import QUANTIZERS
from ..spec.stage import StageSpec
from ..spec.stages import Losses, Pretrain, Prune, QuantizeAware
from ..spec.stages.prune import BUDGETS, WIDTHS
from ..stats.flip_goals import in_words, texts_to_judge
from ..store import Store

if TYPE_CHECKING:
    from ..fields import Spec
    from ..models.dimensions import Dimensions
    from ..models.student_forms import Albert
    from ..pipeline import Plan
    from ..pipeline.plan import Node


def plan_documents(plans: list[Plan], root: Path) -> list[dict[str, Any]]:
    """Return the plans as plain data, with notes on the data that are local."""
    notes = data_notes(plans)
    documents = [plan_document(plan, root) for plan in plans]
    for plan, document in zip(plans, documents, strict=True):
        document |= _outlook(plan, root)
        document["notes"] += notes.get(plan.name, [])
    return documents


def _outlook(plan: Plan, root: Path) -> dict[str, Any]:
    """Return what data there are and what is left to train, if that needs no request to the hub; raises for wrong data."""
    if not check_at_hand([plan], root):
        return {"data": None, "training": None, "outlook": ["data: from the hub, read by `run`"]}
    training, data = estimate([plan], root, assume=True), plan.task.data
    memory = training.memory_line()
    return {
        "data": {"train": len(data.train), "tuning": len(data.tuning), "labels": list(data.labels)},
        "training": {
            "steps": {work.label: work.steps for work in training.work},
            "seconds": training.seconds,
            "rate": training.by if training.seconds is not None else None,
            "device": training.device or "cpu",
            "memory": {work.label: work.memory.document() for work in training.work},
        },
        "outlook": [data_line(plan.task), str(training), *([memory] if memory else [])],
    }


def plan_document(plan: Plan, root: Path) -> dict[str, Any]:
    """Return one plan as plain data."""
    cache = Store.of_runs(root)
    return {
        "run": plan.name,
        "recipe": plan.recipe.name,
        "task": plan.task.spec.name,
        "teacher": plan.teacher.card.name,
        "teachers": list(names_of(plan.teachers).values()),
        "student": plan.student.name if plan.student else None,
        "copied_layers": (layers := _layers(plan, cache)),
        "start": _describe_start(plan, layers),
        "seed": plan.seed,
        "precision": plan.precision,
        "stages": [
            {
                "stage": node.label,
                "cached": cache.find(node.key) is not None,
                "saved_step": saved_step(cache.work(node.key)),
                "key": node.key,
                "settings": _settings(plan, node),
                "layer_map": _layer_map(plan, node.spec),
            }
            for node in plan.nodes
        ],
        "notes": list(plan.notes),
        "models": _models(plan, cache),
        "tradeoff": _tradeoff(plan) or None,
    }


def _models(plan: Plan, cache: Store) -> dict[str, dict[str, Any]]:
    """Return name -> sizes. A model that a stage makes smaller is also listed under that stage's node, with the sizes of its checkpoint;
    before the stage has run, with the sizes that are known."""
    entries = {name: _model(sizes) for name, sizes in plan.sizes.items()}
    models = {node.id: node.model for node in plan.nodes}
    resized: dict[str, Dimensions | None] = {**plan.sizes}
    for node in plan.nodes:
        if node.kind.resized is None:
            continue
        artifact, before = cache.find(node.key), resized[models[node.inputs["model"]]]
        if artifact is not None:
            after = checkpoint_sizes(plan, node.model, artifact.path)
        else:
            after = None if before is None else node.kind.resized(node.spec, before)
        resized[node.model] = after
        if models[node.inputs["model"]] != node.model:
            entries.pop(node.model, None)  # it starts at this node
        entries[node.id] = _unknown(plan.sizes[node.model]) if after is None else _model(after)
    return entries


def _model(sizes: Dimensions) -> dict[str, Any]:
    return {
        "architecture": f"{sizes.architecture} {sizes}",
        "parameters": sizes.parameters,
        "flops_per_token": round(sizes.flops_per_token()),
        "word_parameters": sizes.word_parameters,
    }


def _unknown(sizes: Dimensions) -> dict[str, Any]:
    """Return the entry of a model whose sizes the run chooses."""
    form = f"{sizes.architecture} {sizes.layers} x {sizes.hidden}, sizes chosen by the run"
    return {**dict.fromkeys(_model(sizes)), "architecture": form}


def _layers(plan: Plan, cache: Store) -> list[int] | None:
    """Return the teacher layers, from 0, that the student is copied from; None if there are none, or if the run has yet to choose them."""
    card = plan.student
    if card is not None and card.init == "prune":
        chosen = next((cache.find(node.key) for node in plan.nodes if node.id == CHOSEN_LAYERS), None)
        return None if chosen is None else chosen.info["copied_layers"]
    if card is None or card.init not in ("copy", "project"):
        return None
    teacher = plan.sizes["teacher"].layers
    return list(copied_layers(card.copy_layers, teacher_layers=teacher, student_layers=card.layers, card=card.name))


def _describe_start(plan: Plan, layers: list[int] | None) -> str | None:
    """Describe briefly how the student starts. `layers`: as returned by `_layers`."""
    card = plan.student
    if card is None:
        return None
    if plan.pretrained is not None:
        return f"pre-trained, from {plan.pretrained.card.title}"
    if layers is not None:
        return f"copying teacher layers {layers}, counted from 0"
    if card.init == "prune":
        return f"copying the {card.layers} teacher layers that matter most, chosen by the run on {card.examples} training examples"
    if card.init == "static":
        return "from the teacher's token vectors"
    if card.albert is None or card.init == "random":
        return "from random weights"
    block = card.albert.block
    start = block if isinstance(block, str) else f"from teacher layers {list(block)}"
    return f"converted: E {card.albert.embedding}, {_describe_sharing(card.albert, card.layers)}, {start}"


def _describe_sharing(albert: Albert, layers: int) -> str:
    """Return e.g. `one block for 6 layers`."""
    if albert.share == "none" or albert.groups == layers:
        return f"a block for each of {layers} layers"
    blocks = "one block" if albert.groups == 1 else f"{albert.groups} blocks"
    return f"{blocks} for {layers} layers"


def _tradeoff(plan: Plan) -> str:
    """Return what the student shrinks and what not, by its sizes alone."""
    if plan.student is None:
        return ""
    from ..report.sections.tradeoffs import tradeoff_sentence

    student_sizes, teacher_sizes = plan.sizes["student"], plan.sizes["teacher"]
    flops = student_sizes.flops_per_token() / teacher_sizes.flops_per_token()
    teacher = "the first teacher" if plan.others else "the teacher"
    return tradeoff_sentence(
        "the student", teacher=teacher, parameters=student_sizes.parameters / teacher_sizes.parameters, flops=flops
    )


def _layer_map(plan: Plan, spec: Any) -> list[tuple[int, int]] | None:
    """Return (student layer, teacher layer), from 1, for a stage that matches layers."""
    if not isinstance(spec, Losses) or isinstance(spec, QuantizeAware):
        return None  # in the latter both are the same model
    student, teacher = plan.sizes["student"], plan.sizes["teacher"]
    return list(matched_layers(spec, student_layers=student.layers, teacher_layers=teacher.layers)) or None


def _settings(plan: Plan, node: Node[Spec]) -> dict[str, Any]:
    """Return the settings of a stage that recipes name; empty for other stages."""
    if not isinstance(node.spec, StageSpec):
        return {}
    spec = node.spec
    beside = {"start"} if isinstance(spec, Pretrain) and not uses_cooccurrence_init(spec, plan.teacher) else set()
    settings = spec.model_dump(mode="json", exclude={"per_task", *beside}, exclude_none=True)
    if isinstance(spec, Prune) and spec.budgets:
        return {spec.budget: spec.budgets[0], **settings}
    return settings


def print_plans(documents: list[dict[str, Any]]) -> None:
    """Print tables on stdout."""
    from rich.table import Table

    from .screen import console, headed_line

    screen = console()
    for document in documents:
        student = f" -> {document['student']}, {document['start']}" if document["student"] else ""
        teachers = " + ".join(document["teachers"])
        screen.print(headed_line(document["run"], "bold", f": {teachers}{student}, {document['precision']}"))
        stages = Table("stage", "state", "settings", box=None, pad_edge=False)
        for stage in document["stages"]:
            stages.add_row(stage["stage"], _state(stage), _format_settings(stage))
        screen.print(stages)
        for line in document["outlook"]:
            screen.print(line)
        for note in document["notes"]:
            screen.print(headed_line("note", "yellow", f" {note}"))
        sizes = Table("model", "architecture", "parameters", "FLOPs/token", "word table", box=None, pad_edge=False)
        teacher = document["models"]["teacher"]
        for name, model in document["models"].items():
            whole = {} if name == "teacher" else teacher
            counts = [_count(model[each], whole.get(each)) for each in ("parameters", "flops_per_token")]
            sizes.add_row(name, model["architecture"], *counts, _format_word_embeddings(model))
        screen.print(sizes)
        if document["tradeoff"]:
            screen.print(document["tradeoff"])
        screen.print()


def _count(count: int | None, teacher: int | None) -> str:
    """Format e.g. `11.3M (50%)`, with the share of the `teacher`'s; empty for a model whose sizes the run chooses."""
    if count is None:
        return ""
    return f"{count / 1e6:.1f}M" + (f" ({count / teacher:.0%})" if teacher else "")


def _format_word_embeddings(model: dict[str, Any]) -> str:
    """Format the size of the word embeddings, e.g. `192.0M, 768 MB (69%)`, in fp32 and as a share of the model's parameters."""
    count, whole = model["word_parameters"], model["parameters"]
    return "" if count is None else f"{count / 1e6:.1f}M, {4 * count / 1e6:.3g} MB ({count / whole:.0%})"


def _state(stage: dict[str, Any]) -> str:
    if stage["cached"]:
        return "cached"
    return "to run" if stage["saved_step"] is None else f"to continue, step {stage['saved_step']}"


_SHOWN = (
    "start", "epochs", "learning_rate", "batch_size", "copies", "source", *BUDGETS, *WIDTHS, "examples", "graph", "opset", "method"
)  # fmt: skip


_UNLESS_USUAL = {"score": "fisher", "repair": Prune.model_fields["repair"].default}


def _format_settings(stage: dict[str, Any]) -> str:
    settings = stage["settings"]
    words = [f"{name} {settings[name]}" for name in _SHOWN if name in settings]
    words += [
        f"{name} {settings[name] or 'false'}"
        for name, usual in _UNLESS_USUAL.items()
        if settings.get(name, usual) != usual
    ]
    if "max_steps" in settings:
        words = [
            f"{word}, at most {settings['max_steps']} steps" if word.startswith("epochs ") else word for word in words
        ]
    if "method" in settings and QUANTIZERS[settings["method"]].counts_flips:
        texts = texts_to_judge(settings["max_flips"])
        words.append(
            f"at most {in_words({'drop': settings['max_drop'], 'flips': settings['max_flips']})} of {texts:,} texts"
        )
    if losses := settings.get("losses"):
        words.append(" + ".join(f"{loss['weight']:g} {loss['name']}" for loss in losses if loss["weight"]))
    if stage["layer_map"]:
        pairs = (f"{student_layer}<-{teacher_layer}" for student_layer, teacher_layer in stage["layer_map"])
        words.append(f"layers {' '.join(pairs)}")
    return ", ".join(words)
