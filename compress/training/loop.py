"""The loop: batches, forward, objective, backward, clip, step. One, for every kind of training."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from .. import signals
from ..errors import CheckFailed, Interrupted
from ..models.dropout import draw_quickly
from ..models.features import Features, compute_features
from ..models.predict import to_tensors
from ..objective import Objective
from ..spec.stages import Training
from . import state
from .schedule import learning_rate, total_steps

_ADVICE = "stopped before the weights were touched. Lower learning_rate, or train with --precision fp32"

TeacherFeatures = Callable[[dict[str, Tensor], np.ndarray], Features]


@dataclass(frozen=True)
class StepReport:
    """One optimizer step, for progress displays and the log. Losses are weighted and averaged over the batch."""

    step: int
    total: int
    epoch: float
    losses: dict[str, float]
    learning_rate: float
    examples: int
    tokens: int
    seconds: float
    tuning: float | None = None


class Batches(Protocol):
    """What is trained on, a batch per optimizer step, in an order that depends on the seed alone.

    Examples are named by int64 ids; `len` is the batches of one epoch.
    """

    seed: int

    def __len__(self) -> int: ...

    def indices(self, step: int) -> np.ndarray:
        """Ids of the examples of optimizer step `step`, counted from 0 over all epochs."""
        ...

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        """Real tokens of each."""
        ...

    def collate(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """`input_ids`, `attention_mask` and `token_type_ids` [batch, length], and `labels` where there are some."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What training came to. Scores are headline points on the tuning split."""

    steps: int
    best_step: int | None
    best_score: float | None
    history: list[dict[str, float]]


def train(
    model: nn.Module,
    objective: Objective,
    data: Batches,
    settings: Training,
    *,
    accelerator: Accelerator,
    teacher: TeacherFeatures,
    evaluate: Callable[[nn.Module], float] | None,
    work: Path,
    on_step: Callable[[StepReport], None] = lambda report: None,
    checkpoint_seconds: float = 60.0,
) -> Outcome:
    """Train `model` in place; afterwards it holds the weights to keep.

    `teacher` gives the objective's teacher features for a batch and its example indices;
    `evaluate` scores the model on the tuning split, in points; without it the last weights are kept. State
    is kept in `work`, where an interrupted run is picked up at its last checkpoint and goes on bit for bit.
    Raises `CheckFailed` on the first non-finite loss, before it reaches a weight, and
    `Interrupted` after a stop signal, with the state saved.
    """
    total = total_steps(settings, len(data))
    optimizer = _optimizer(model, objective, settings)
    draw_quickly(model)
    model, objective, optimizer = accelerator.prepare(model, objective, optimizer)
    run = _Run(model, objective, optimizer, accelerator, data, settings, teacher, evaluate, work, total)
    torch.manual_seed(data.seed)
    run.resume()
    model.train()
    with signals.deferred():
        saved = time.monotonic()
        while run.progress.step < total:
            report = run.step()
            on_step(report)
            stop = signals.requested()
            if stop or report.tuning is not None or time.monotonic() - saved > checkpoint_seconds:
                run.save()
                saved = time.monotonic()
            if stop:
                raise Interrupted(
                    f"stopped at step {run.progress.step} of {total}; the same command continues there", stop
                )
    run.load_best()
    progress = run.progress
    return Outcome(progress.step, progress.best_step, progress.best_score, progress.history)


def _optimizer(model: nn.Module, objective: Objective, settings: Training) -> torch.optim.Optimizer:
    """AdamW with bias correction; no decay on biases and norms. Fused: one pass over the embedding table."""
    decayed, plain = [], []
    for parameter in [*model.parameters(), *objective.parameters()]:
        if parameter.requires_grad:
            (decayed if parameter.ndim > 1 else plain).append(parameter)
    groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=True)


@dataclass
class _Run:
    """The state of one training run between steps."""

    model: nn.Module
    objective: Objective
    optimizer: torch.optim.Optimizer
    accelerator: Accelerator
    data: Batches
    settings: Training
    teacher: TeacherFeatures
    evaluate: Callable[[nn.Module], float] | None
    work: Path
    total: int

    def __post_init__(self) -> None:
        self.progress = state.Progress()

    @property
    def _modules(self) -> tuple[nn.Module, nn.Module]:
        unwrap = self.accelerator.unwrap_model
        return unwrap(self.model), unwrap(self.objective)

    def step(self) -> StepReport:
        """One optimizer step over one batch, in micro-batches."""
        started = time.perf_counter()
        number = self.progress.step
        indices = self.data.indices(number)
        rate = learning_rate(self.settings, number, self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        tokens = int(self.data.lengths(indices).sum())
        losses: dict[str, float] = {}
        for part in self._micro_batches(indices):
            for name, value in self._backward(part, indices).items():
                losses[name] = losses.get(name, 0.0) + value
        self._clip()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress.step = number + 1
        seconds = time.perf_counter() - started
        epoch = self.progress.step / len(self.data)
        tuning = self._maybe_evaluate()
        return StepReport(self.progress.step, self.total, epoch, losses, rate, len(indices), tokens, seconds, tuning)

    def _micro_batches(self, indices: np.ndarray) -> list[np.ndarray]:
        size = self.settings.micro_batch_size or len(indices)
        return [indices[start : start + size] for start in range(0, len(indices), size)]

    def _backward(self, part: np.ndarray, whole: np.ndarray) -> dict[str, float]:
        """Gradients of a micro-batch's share of the batch `whole`; the shares of the losses."""
        batch = to_tensors(self.data.collate(part), self.accelerator.device)
        with self.accelerator.autocast():
            targets = self.teacher(batch, part)
            features = compute_features(self.model, batch, self.objective.student_features)
        lengths, per_token = self.data.lengths, self.objective.per_token
        tokens, examples = lengths(part).sum() / lengths(whole).sum(), len(part) / len(whole)
        terms = {
            name: term * (float(tokens) if name in per_token else examples)
            for name, term in self.objective(features, targets, batch).items()
        }
        values = {name: float(term.detach()) for name, term in terms.items()}
        bad = [name for name, value in values.items() if not np.isfinite(value)]
        if bad:
            raise CheckFailed(f"step {self.progress.step + 1}: loss {', '.join(bad)} is {values[bad[0]]}; {_ADVICE}")
        self.accelerator.backward(sum(terms.values()))
        return values

    def _clip(self) -> None:
        """A finite loss can have a gradient that is not, and AdamW would carry it into every weight."""
        parameters = [*self.model.parameters(), *self.objective.parameters()]
        norm = self.accelerator.clip_grad_norm_(parameters, self.settings.max_grad_norm)
        if norm is not None and not np.isfinite(float(norm)):
            raise CheckFailed(f"step {self.progress.step + 1}: the gradient's norm is {float(norm)}; {_ADVICE}")

    def _maybe_evaluate(self) -> float | None:
        every = max(1, round(self.settings.evaluate_every * len(self.data)))
        step = self.progress.step
        if self.evaluate is None or (step % every and step != self.total):
            return None
        score = self.evaluate(self._modules[0])
        self.progress.history.append({"step": step, "score": score})
        best = self.progress.best_score
        if self.settings.keep == "last" or best is None or score > best:
            self.progress.best_score, self.progress.best_step = score, step
            self._write_best(step)
        return score

    def _best_path(self, step: int) -> Path:
        return self.work / f"best-{step}.safetensors"

    def _write_best(self, step: int) -> None:
        state.save_weights(self._best_path(step), self._modules)

    def save(self) -> None:
        """A checkpoint; only then do weights that it no longer names go."""
        state.save(self.work / "state.safetensors", self.progress, self._modules, self.optimizer)
        for path in self.work.glob("best-*.safetensors"):
            if path != self._best_path(self.progress.best_step or 0):
                path.unlink()

    def resume(self) -> None:
        self.work.mkdir(parents=True, exist_ok=True)
        found = state.restore(self.work / "state.safetensors", self._modules, self.optimizer)
        if found is not None:
            self.progress = found

    def load_best(self) -> None:
        step = self.progress.best_step
        if step is not None and step != self.progress.step:
            state.load_weights(self._best_path(step), self._modules)
