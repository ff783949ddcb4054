"""How much a trained model's loss depends on each head and neuron: the Fisher information of masks on them (Kwon et al.
2022, arXiv:2204.09656, §4.1)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..models.features.named import compute_features
from ..models.features.predict import to_tensors
from ..models.pruned.model import head_size, layer_part
from ..objective import Objective
from ..tasks import TaskBatches
from .layerwise import READERS
from .unit_choice import rearrange_units


@dataclass(frozen=True)
class LayerGradients:
    """Gradients of a layer: ∂ loss of an example / ∂ mask of a unit, with every mask at 1. `heads` [example, head],
    `neurons` [example, neuron]."""

    heads: Float[Tensor, "example head"]
    neurons: Float[Tensor, "example neuron"]


@dataclass(frozen=True)
class FisherScores:
    """Scores of one part of a layer, from the gradients of its units' masks."""

    gradients: Float[Tensor, "example unit"]

    def losses(self, counts: np.ndarray) -> np.ndarray:
        """Return the importance of the removed units for each count of kept ones, the most important, [option]."""
        kept = np.concatenate([[0.0], np.cumsum(np.sort(importance(self.gradients).numpy())[::-1])])
        return kept[-1] - kept[counts]

    def kept(self, count: int) -> list[int]:
        """Return the indices, ascending, of the units that stay after exchanges with removed ones (`rearranged`)."""
        return rearrange_units(self.gradients.numpy(), count)


def fisher_scores(gradients: Sequence[LayerGradients]) -> list[FisherScores]:
    """Return the scores of the heads and of the neurons of each layer, in this order."""
    return [FisherScores(part) for layer in gradients for part in (layer.heads, layer.neurons)]


def importance(gradients: Float[Tensor, "example unit"]) -> Float[Tensor, " unit"]:
    """Return the diagonal of the Fisher information, Σ g²: to second order twice the increase of the loss without the unit."""
    return gradients.double().square().sum(0)


def mask_gradients(
    model: Any,
    objective: Objective,
    data: TaskBatches,
    *,
    examples: int,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[LayerGradients]:
    """Return the gradients of each layer of `model` over the first `examples` of `data`'s first epoch, with one backward
    pass per batch.

    The loss of an example is the sum over what the objective's losses average over, e.g. its words; examples with a joint
    loss, such as the passages of a query, count as one. The model is in evaluation mode meanwhile, and left unchanged; the
    gradients are on the CPU.
    """
    by_batch: list[list[Tensor]] = []
    wanted, done, device = min(examples, len(data.encoded)), 0, next(model.parameters()).device
    with _freeze_model(model):
        for step in range(len(data)):
            if done >= wanted:
                break
            rows = data.indices(step)
            rows = rows[: wanted - done] if data.groups(rows) is None else rows
            masks = [
                torch.ones(len(rows), _count(model, layer, part), device=device, requires_grad=True)
                for layer in range(model.config.num_hidden_layers)
                for part, _ in READERS.values()
            ]
            with _mask_units(model, masks):
                loss = _summed_loss(model, objective, data, rows)
            # The loss does not depend on the masks of parts without units.
            gradients = torch.autograd.grad(loss, masks, materialize_grads=True)
            by_batch.append([_by_example(each.cpu(), data.groups(rows)) for each in gradients])
            done += len(rows)
            on_progress(min(done, wanted), wanted)
    joined = [torch.cat(parts) for parts in zip(*by_batch, strict=True)]
    return [LayerGradients(*joined[index : index + 2]) for index in range(0, len(joined), 2)]


def _count(model: Any, layer: int, part: str) -> int:
    """Return the number of units that the part reads."""
    inputs = layer_part(model, layer, part).in_features
    return inputs // head_size(model) if part == READERS["heads"][0] else inputs


@contextmanager
def _freeze_model(model: nn.Module) -> Iterator[None]:
    """While open, the model is in evaluation mode, and its weights have no gradients."""
    training, before = model.training, [parameter.requires_grad for parameter in model.parameters()]
    model.eval().requires_grad_(False)
    try:
        yield
    finally:
        for parameter, required in zip(model.parameters(), before, strict=True):
            parameter.requires_grad = required
        model.train(training)


@contextmanager
def _mask_units(model: Any, masks: Sequence[Tensor]) -> Iterator[None]:
    """While open, the inputs of the output matrices of attention and of the feed-forward part are multiplied by masks
    [example, unit]: for each layer one of heads and one of neurons."""
    handles, parts = [], [part for part, _ in READERS.values()]
    try:
        for index, mask in enumerate(masks):
            reader = layer_part(model, index // 2, parts[index % 2])
            if not reader.in_features:
                continue
            wide = mask.repeat_interleave(reader.in_features // mask.shape[1], dim=1)[:, None]
            handles.append(reader.register_forward_pre_hook(_multiply_input(wide)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _multiply_input(mask: Tensor) -> Callable[[nn.Module, tuple[Tensor, ...]], tuple[Tensor]]:
    return lambda module, inputs: (inputs[0] * mask,)


def _summed_loss(model: nn.Module, objective: Objective, data: TaskBatches, rows: np.ndarray) -> Tensor:
    batch = to_tensors(data.collate(rows), next(model.parameters()).device)
    features = compute_features(model, batch, objective.student_features)
    terms = objective(features, {}, batch)
    counts = {name: _count_units(data, objective.means_over.get(name, "examples"), rows) for name in terms}
    return torch.stack([term * counts[name] for name, term in terms.items()]).sum()


def _count_units(data: TaskBatches, unit: Any, rows: np.ndarray) -> float:
    return len(rows) if unit == "examples" else float(data.counts(unit, rows).sum())


def _by_example(gradients: Tensor, groups: np.ndarray | None) -> Tensor:
    """Sum [row, unit] over the rows of each group."""
    if groups is None:
        return gradients
    _, places = np.unique(groups, return_inverse=True)
    return gradients.new_zeros(int(places.max()) + 1, gradients.shape[1]).index_add_(
        0, torch.from_numpy(places), gradients
    )
