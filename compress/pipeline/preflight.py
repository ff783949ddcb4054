"""Checks before any compute that everything fits together. Each failure names the two things that disagree."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CompressError
from ..fields import Spec
from ..files.paths import check_folder, nearest_existing
from ..losses import LOSSES
from ..models.checkpoints.folders import largest_number, load_tokenizer
from ..models.checkpoints.weights import layers_in, weight_files
from ..models.families import FAMILIES
from ..spec.kinds import KINDS
from ..spec.stages import OnText, Training
from ..store import Store
from ..tasks import is_at_hand
from ..tasks.batches.queries import TOO_FEW
from .excluded import check_excluded
from .plan import Node, Plan
from .plan.teachers import TeacherSource
from .stages.registry import kind_of
from .training.text import stage_losses

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# float32 weights and two Adam moments, the best weights, the checkpoint, and the graphs.
_BYTES_PER_PARAMETER = 4 * (3 + 1 + 1 + 2)
_BYTES_KEPT = 4  # for a trained candidate, only the checkpoint; the rest is counted for the node that chooses among the candidates


def preflight(plans: list[Plan], root: Path) -> None:
    """Raise `CompressError` for the first thing that could not work; write nothing."""
    for plan in plans:
        check_plan(plan, root)
    check_folder(root, "--out")
    _check_disk_space(plans, root)
    check_excluded((plan, node) for plan in plans for node in _missing_stages(plan, root))


def check_at_hand(plans: list[Plan], root: Path) -> list[Plan]:
    """Return the plans whose data can be read without the hub, after all checks that need no torch."""
    plans_at_hand = [plan for plan in plans if is_at_hand(plan.task.spec, plan.task.folder, plan.task.data_dir)]
    for plan in plans_at_hand:
        _ = plan.task.data
        check_plan(plan, root)
    return plans_at_hand


def check_plan(plan: Plan, root: Path) -> None:
    """Raise `CompressError` if the data, the checkpoint and the stages that are left to run do not fit each other."""
    missing = _missing_stages(plan, root)
    if missing:
        _ = plan.task.data  # whole, so that a bad row costs no training
        for teacher in plan.teachers.values():
            _check_checkpoint(teacher)
    if plan.pretrained is not None and any(node.outside.get("pretrained") for node in missing):
        _check_checkpoint(plan.pretrained)
    for node in missing:
        _check_batch(plan, node)
        if (check := kind_of(node).check) is not None:
            check(plan, node)


def _check_batch(plan: Plan, node: Node[Spec]) -> None:
    """Raise `CompressError` if a batch is too small for two passages, endings or texts, where these are compared with each other."""
    spec, group = node.spec, KINDS[plan.task.spec.kind].grouped
    if not isinstance(spec, Training) or isinstance(spec, OnText):
        return
    where = f"recipe {plan.recipe.name}, stage {node.stage}"
    if group and spec.batch_size < 2:
        few = TOO_FEW.format(group[1], group[0])
        raise CompressError(f"{where}: batch_size is {spec.batch_size}; {few}")
    sizes = {"batch_size": spec.batch_size, "micro_batch_size": spec.micro_batch_size}
    alone = next((name for name, size in sizes.items() if size == 1), None)
    comparing = next((loss.name for loss in stage_losses(node) if LOSSES[loss.name].compares_texts), None)
    if alone and comparing:
        raise CompressError(
            f"{where}: {alone} is 1; {comparing} compares the texts of a forward pass with each other, so expected at least 2"
        )


def _missing_stages(plan: Plan, root: Path) -> list[Node[Spec]]:
    """The stages that would run."""
    cache = Store.of_runs(root)
    return [node for node in plan.nodes if not cache.has(node.key)]


def _check_checkpoint(source: TeacherSource) -> None:
    folder = source.folder or source.grown_from
    if folder is None:
        return
    weight_files(folder)
    sizes = source.dimensions(1)
    actual, expected = layers_in(folder), sizes.layers
    if actual > expected and isinstance(source.card.layers, str):  # else the rest is cut off
        raise CompressError(
            f"{folder}: the weights have {actual} layers and config.json says {expected}; the config belongs to "
            "another checkpoint"
        )
    tokenizer = load_tokenizer(folder)
    tokens, rows = largest_number(tokenizer) + 1, sizes.vocabulary
    if tokens > rows:
        raise CompressError(
            f"{folder}: the tokenizer knows {tokens} tokens and the embedding table (config.json: vocab_size) has "
            f"{rows} rows; the tokenizer belongs to another checkpoint"
        )
    _check_padding_token(source, tokenizer)


def _check_padding_token(source: TeacherSource, tokenizer: Tokenizer) -> None:
    """Refuse a padding token that is part of every text: where positions count from it, torch would skip it, and graphs would not."""
    config, padding = source.config, source.config.get("pad_token_id")
    if FAMILIES[config["model_type"]].embeddings.positions_after_padding and padding in tokenizer.encode("", "").ids:
        raise CompressError(
            f"{source.folder or source.grown_from}: config.json: pad_token_id: positions are counted by it, and {padding} is "
            f"{tokenizer.id_to_token(padding)}, which the tokenizer puts around every text; expected the number of the padding token"
        )


def _check_disk_space(plans: list[Plan], root: Path) -> None:
    missing = {node.key: (plan, node) for plan in plans for node in _missing_stages(plan, root) if node.kind.checkpoint}
    needed = sum(_bytes(plan, node) for plan, node in missing.values())
    free = shutil.disk_usage(nearest_existing(root)).free
    if needed > free:
        raise CompressError(
            f"{root}: {int(free // 1e6):,} MB are free and this plan needs about {math.ceil(needed / 1e6):,} MB; "
            "free some, or choose another folder with --out"
        )


def _bytes(plan: Plan, node: Node[Spec]) -> int:
    each = _BYTES_KEPT if node.id in plan.candidates else _BYTES_PER_PARAMETER
    return plan.sizes_of(node).parameters * each
