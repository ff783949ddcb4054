"""Gradients of one batch: in micro-batches, on any number of processes, within the available memory."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ..errors import CompressError
from ..losses.loss import MeanOver
from ..models.features.named import Features, compute_features
from ..models.features.predict import to_tensors
from ..objective import Objective
from ..processes import ranks
from . import data_parallel, state
from .loading import Loader
from .sharded_tensors import is_sharded

TeacherFeatures = Callable[[dict[str, Tensor], np.ndarray], Features]


@dataclass
class Gradients:
    """Computes the gradients of a batch, the mean over all of its examples, into the parameters of `modules`.

    `micro`: examples per forward; None: a process's whole share of the batch. It is halved when memory runs out, unless the weights of
    `model` are sharded, as a single process cannot then repeat a step.
    """

    model: nn.Module
    objective: Objective
    accelerator: Accelerator
    data: Loader
    teacher: TeacherFeatures
    micro: int | None

    def __post_init__(self) -> None:
        self._names: list[str] = []
        self._totals: dict[MeanOver, float] = {}  # of the current batch
        self.sharded = any(is_sharded(parameter) for parameter in self.model.parameters())

    @property
    def modules(self) -> tuple[nn.Module, nn.Module]:
        return self.model, self.objective

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [*self.model.parameters(), *self.objective.parameters()]

    def compute(self, batch: np.ndarray, following: np.ndarray | None = None) -> tuple[list[str], Tensor]:
        """Return the names of the losses, and their shares [micro-batch, loss] on the device, without waiting for it.

        `following`: the next batch, whose first part is collated meanwhile. Raises `CompressError` if there is no memory for one example.
        """
        before, self._totals = state.Snapshot(self.modules), {}
        terms = self._in_memory(batch, following, before)
        if ranks.count() > 1:
            terms = self._reduce_gradients(terms.sum(0), before, len(self._share_of(batch)) / len(batch))[None]
        return self._names, terms

    def _in_memory(self, batch: np.ndarray, following: np.ndarray | None, before: state.Snapshot) -> Tensor:
        """Compute the gradients. If memory runs out, the step is repeated from its start, with the same dropout, in smaller parts."""
        share = self._share_of(batch)
        while True:
            size = min(self.micro or len(batch), max(1, len(share)))
            try:
                with ranks.connected(computes=True):
                    parts = self._split_share(share, batch, size)
                    upcoming = [*(_forward_examples(part, batch) for part in parts[1:]), self._first_of(following)]
                    return self._backward_all(parts, upcoming, batch, before)
            except torch.OutOfMemoryError:
                pass  # leaving the handler frees its traceback, which holds the step's tensors
            self._halve(size)
            before.restore()

    def _backward_all(
        self, parts: list[np.ndarray], upcoming: list[np.ndarray | None], whole: np.ndarray, before: state.Snapshot
    ) -> Tensor:
        """Run `_backward` on the parts. Each moves floating-point buffers, such as moving ranges, from where the step began; their mean
        move is kept, so that parts move them no farther than the whole batch would."""
        terms: list[Tensor] = []
        moves: list[list[Tensor]] = []
        examples = max(1, sum(map(len, parts)))
        for part, next_part in zip(parts, upcoming, strict=True):
            terms.append(self._backward(part, next_part, whole))
            if len(parts) > 1:
                moves.append(before.take_back_moves(len(part) / examples))
        if moves:
            before.move(torch.stack(each).sum(0) for each in zip(*moves, strict=True))
        return torch.stack(terms)

    def _split_share(self, share: np.ndarray, batch: np.ndarray, size: int) -> list[np.ndarray]:
        """Return the examples of each forward. Empty parts have weight 0: every process must have the same losses and gradients, and with
        sharded weights as many forwards."""
        parts = data_parallel.split_share(share, self.data.groups(share), size)
        return parts + [share[:0]] * (self._forwards(batch) - len(parts))

    def _forwards(self, batch: np.ndarray) -> int:
        """Return the minimum number of forwards of every process."""
        if not self.sharded:
            return 1
        groups = self.data.groups(batch)
        if groups is None:
            largest = data_parallel.largest_share(batch)
            return -(-largest // (self.micro or largest))
        shares = [data_parallel.share(batch, groups, rank) for rank in range(ranks.count())]
        return max(
            len(data_parallel.split_share(own, self.data.groups(own), self.micro or len(batch))) for own in shares
        )

    def _share_of(self, batch: np.ndarray) -> np.ndarray:
        return data_parallel.share(batch, self.data.groups(batch))

    def _first_of(self, batch: np.ndarray | None) -> np.ndarray | None:
        """Return the examples of a batch's first forward."""
        if batch is None:
            return None
        share = self._share_of(batch)
        first = data_parallel.split_share(share, self.data.groups(share), self.micro or len(batch))
        return _forward_examples(first[0] if first else share, batch)

    @property
    def _least(self) -> str:
        """The smallest unit of a forward, in words."""
        grouped = self.data.groups(np.zeros(0, np.int64)) is not None
        return "query's passages (batch_size is the most of them)" if grouped else "example"

    def _halve(self, size: int) -> None:
        if size == 1:
            raise CompressError(
                f"out of memory with one {self._least} at a time; lower max_length, or train where there is more memory"
            )
        if self.sharded:
            raise CompressError(
                f"out of memory with {size} examples per forward pass, which --fsdp cannot undo: start the stage again with "
                "a lower micro_batch_size"
            )
        self.micro = size // 2
        for parameter in self.parameters:
            parameter.grad = None
        if self.accelerator.device.type == "cuda":
            torch.cuda.empty_cache()

    def _backward(self, part: np.ndarray, upcoming: np.ndarray | None, whole: np.ndarray) -> Tensor:
        """Add the gradients of a micro-batch, weighted by its share of the batch `whole`, and return the losses' shares; all are 0 for an
        empty part. `upcoming`: what is collated next."""
        counted = len(part) > 0
        part = _forward_examples(part, whole)
        arrays = self.data.collate(part)
        shares = {unit: self._share(unit, part, whole) for unit in set(self.objective.means_over.values())}
        self.data.prefetch(upcoming)
        batch = to_tensors(arrays, self.accelerator.device)
        with self.accelerator.autocast():
            targets = self.teacher(batch, part)
            features = compute_features(self.model, batch, self.objective.student_features)
        terms = {
            name: term * (shares[self.objective.means_over.get(name, "examples")] if counted else 0.0)
            for name, term in self.objective(features, targets, batch).items()
        }
        self.accelerator.backward(sum(terms.values()))
        self._names = list(terms)
        return torch.stack([term.detach().float() for term in terms.values()])

    def _share(self, unit: MeanOver, part: np.ndarray, whole: np.ndarray) -> float:
        """Return the part's share of the batch's `unit`; 0 if the batch has none, as the mean is 0 too."""
        if len(part) == len(whole):
            return 1.0
        if unit not in self._totals:
            self._totals[unit] = self.data.count(unit, whole)
        every = self._totals[unit]
        return self.data.count(unit, part) / every if every else 0.0

    @torch.no_grad()
    def _reduce_gradients(self, terms: Tensor, before: state.Snapshot, weight: float) -> Tensor:
        """Sum over the processes: gradients, losses, and what forwards add to floating-point buffers, such as moving ranges."""
        trained = [p for p in self.parameters if p.grad is not None and not is_sharded(p.grad)]
        moves = before.take_back_moves(weight)
        *summed, terms = data_parallel.sum_over_processes(
            [*(p.grad for p in trained if p.grad is not None), *moves, terms]
        )
        for parameter, gradient in zip(trained, summed[: len(trained)], strict=True):
            parameter.grad = gradient
        before.move(summed[len(trained) :])
        return terms


def _forward_examples(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return the examples that are passed through the forward: for an empty part one, at weight 0."""
    return part if len(part) else whole[:1]
