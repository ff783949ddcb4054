"""A plan's models with random weights, for what does not depend on weights and is wanted before they are trained: times, and the
names of nodes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.checkpoints.folders import label_fields
from ..models.checkpoints.pretrained import quiet_transformers
from ..models.dimensions import Dimensions
from ..models.families import FAMILIES
from ..models.heads import HEADS
from ..spec.stages import Export
from .plan import Plan
from .plan.changed import activation_of

if TYPE_CHECKING:
    from onnx import ModelProto


def write_random(plan: Plan, name: str, sizes: Dimensions, folder: Path) -> Path:
    """Write the fp32 ONNX file of the plan's model `name`, with these `sizes` and random weights, into `folder`; return its path."""
    from ..export import export_onnx

    spec, export = plan.task.spec, export_of(plan, name)
    with _random_checkpoint(plan, name, sizes) as checkpoint:
        export_onnx(
            checkpoint,
            folder,
            opset=export.opset,
            task_name=spec.name,
            labels=plan.task.data.labels,
            kind=spec.kind,
            graph=export.graph,
            pairs=spec.pairs,
        )
    return folder / "model.onnx"


def random_graph(plan: Plan, name: str, sizes: Dimensions) -> ModelProto:
    """Return the fp32 graph of the plan's model `name`, with these `sizes` and random weights."""
    from ..export import unchecked_graph

    spec, export = plan.task.spec, export_of(plan, name)
    with _random_checkpoint(plan, name, sizes) as checkpoint:
        return unchecked_graph(checkpoint, opset=export.opset, kind=spec.kind, graph=export.graph, pairs=spec.pairs)


@contextmanager
def _random_checkpoint(plan: Plan, name: str, sizes: Dimensions) -> Iterator[Path]:
    import torch

    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng():
        torch.manual_seed(0)
        model = random_model(plan, name, sizes, plan.task.data.labels)
        quiet_transformers()
        model.save_pretrained(folder)
        yield Path(folder)


def random_model(plan: Plan, name: str, sizes: Dimensions, labels: tuple[str, ...]) -> Any:
    """Return the transformers model that the plan calls `name`, with these `sizes` and random weights."""
    from ..models.heads import model_from
    from ..pruning.budget import unit_counts
    from ..pruning.removal import without_units

    config = config_of(plan, name, labels)
    config.vocab_size = sizes.vocabulary
    if config.pad_token_id is not None:
        config.pad_token_id = min(config.pad_token_id, sizes.vocabulary - 1)
    model = model_from(HEADS[plan.task.spec.kind], config)
    counts = unit_counts(sizes)
    if counts == unit_counts(plan.sizes[name]):
        return model
    return without_units(model, [range(heads) for heads, _ in counts], [range(neurons) for _, neurons in counts])


def export_of(plan: Plan, name: str) -> Export:
    """Return the spec by which the plan exports its model `name`."""
    specs = (node.spec for node in plan.nodes if node.id == f"{name}-fp32")
    return next(spec for spec in specs if isinstance(spec, Export))


def config_of(plan: Plan, name: str, labels: tuple[str, ...]) -> Any:
    """Return transformers' config of the checkpoint that the plan exports as `name`."""
    from ..models.checkpoints.pretrained import transformers_config
    from ..models.students.build import config_of_student

    config = transformers_config({**plan.source(name).config, **label_fields(plan.task.spec.kind, labels)})
    if name == "student" and plan.pretrained is None and plan.student is not None:
        config = config_of_student(plan.student, config, plan.sizes[name])
    if (activation := activation_of(plan.nodes, name)) is not None:
        setattr(config, FAMILIES[config.model_type].own_name("hidden_act"), activation)
    return config
