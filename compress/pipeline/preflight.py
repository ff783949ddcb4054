"""Before any compute: does everything fit together? Each failure names the two things that disagree."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..augment import read_glove
from ..errors import CompressError
from ..models.checkpoints import layers_in, load_tokenizer, pad_id, weight_files
from ..models.dimensions import Dimensions
from ..models.students import student_dimensions, untied_card
from ..places import check_folder, from_home, nearest
from ..spec.quantization import INC
from .adoption import label_order
from .aware_planning import AWARE
from .draft import Node
from .judging import read_lines, refuse_reported
from .plan import Plan

# float32 weights and two Adam moments, the best weights, the checkpoint, and the graphs.
_BYTES_PER_PARAMETER = 4 * (3 + 1 + 1 + 2)
_GLOVE_LINES = 100


def preflight(plans: list[Plan], root: Path) -> None:
    """Raise `CompressError` for the first thing that could not work; write nothing."""
    for plan in plans:
        if _missing(plan, root):
            _checkpoint_fits(plan)
            _graph_can_be_written(plan, root)
        _packages_are_there(plan, root)
        _vectors_parse(plan, root)
        _calibration_text_serves(plan, root)
    check_folder(root, "--out")
    _disk_suffices(plans, root)


def _missing(plan: Plan, root: Path) -> list[Node]:
    """The stages that would run."""
    return [node for node in plan.nodes if not (root / ".store" / node.key).is_dir()]


def _checkpoint_fits(plan: Plan) -> None:
    """Reads the data whole, so that a bad row costs no training."""
    labels = plan.task.data.labels
    teacher = plan.teacher
    folder = teacher.folder or teacher.small
    if folder is None:
        return
    weight_files(folder)
    found, expected = layers_in(folder), plan.sizes["teacher"].layers
    if found > expected:
        raise CompressError(
            f"{folder}: the weights have {found} layers and config.json says {expected}; the config is another checkpoint's"
        )
    tokens, rows = load_tokenizer(folder).get_vocab_size(), plan.sizes["teacher"].vocabulary
    if tokens > rows:
        raise CompressError(
            f"{folder}: the tokenizer knows {tokens} tokens and the embedding table (config.json: vocab_size) has {rows} rows; "
            "the tokenizer is not this checkpoint's"
        )
    if (pad := pad_id(teacher.config)) >= rows:
        raise CompressError(f"{folder / 'config.json'}: pad_token_id is {pad} and the embedding table has {rows} rows")
    if any(node.kind == "adopt" for node in plan.nodes):
        label_order(teacher.labels, labels, where=str(teacher.folder))


def _graph_can_be_written(plan: Plan, root: Path) -> None:
    """The export comes after the fine-tuning."""
    if any(node.kind == "export" and node.spec.graph == "fast" for node in _missing(plan, root)):
        from ..export.fast import check_parts

        check_parts(plan.teacher.config, f"recipe {plan.recipe.name}, teacher {plan.teacher.card.name}")


def _packages_are_there(plan: Plan, root: Path) -> None:
    """Those that only some recipes need; the stage itself comes after training."""
    from ..quantize.inc import check_installed

    if any(node.kind == "quantize" and node.spec.method == INC for node in _missing(plan, root)):
        check_installed()


def _vectors_parse(plan: Plan, root: Path) -> None:
    """The first lines of the word vectors that an augment stage would read; the stage itself comes after training."""
    for node in _missing(plan, root):
        if node.kind == "augment" and node.spec.glove is not None:
            read_glove(from_home(node.spec.glove), _GLOVE_LINES)


def _calibration_text_serves(plan: Plan, root: Path) -> None:
    for node in _missing(plan, root):
        if node.kind == "quantize" and node.spec.calibration_text is not None:
            texts = read_lines(from_home(node.spec.calibration_text), len(plan.task.spec.text))
            refuse_reported(node.spec.calibration_text, texts, plan.task.data.reported)


def _disk_suffices(plans: list[Plan], root: Path) -> None:
    missing = {node.key: node for plan in plans for node in _missing(plan, root)}
    models = {
        "pretrain": "teacher",
        "grow": "teacher",
        "finetune": "teacher",
        "adopt": "teacher",
        "masked_lm": "teacher",
        "general": "student",
        "distill": "student",
    }
    sizes = {
        node.key: _untied_sizes(plan) if getattr(node.spec, "untied", False) else plan.sizes[models[node.kind]]
        for plan in plans
        for node in plan.nodes
        if node.kind in models
    }
    sizes |= {node.key: plan.sizes[node.model] for plan in plans for node in plan.nodes if node.kind == AWARE}
    needed = sum(sizes[key].parameters * _BYTES_PER_PARAMETER for key in missing if key in sizes)
    free = shutil.disk_usage(nearest(root)).free
    if needed > free:
        raise CompressError(
            f"{root}: {free / 1e9:.1f} GB are free and this plan needs about {needed / 1e9:.1f} GB; "
            "free some, or choose another folder with --out"
        )


def _untied_sizes(plan: Plan) -> Dimensions:
    """Of the student while each of its layers has a block of its own."""
    if plan.student is None:
        raise RuntimeError("a stage is only untied with a student")
    return student_dimensions(untied_card(plan.student), plan.sizes["teacher"])
