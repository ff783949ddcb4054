"""The training loop, for every kind of training: batches, forward, objective, backward, clip, step."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ..errors import CheckFailed, CompressError, Interrupted
from ..models.features.dropout import draw_quickly
from ..objective import Objective
from ..processes import ranks, signals
from ..spec.stages import Training
from . import data_parallel, sharding, state
from .gradients import Gradients, TeacherFeatures
from .loading import Batches, Loader
from .precision import in_fp32, own_forward
from .schedule import learning_rate, left_by_decay, total_steps
from .word_rows import WordTable, cut_words

_ADVICE = "stopped before the weights were touched. Lower learning_rate"
_IN_BF16 = ", or train with --precision fp32"
_NO_ROOM = "beside the examples, for the gradients' sum, AdamW's state or the tuning split; a smaller model or more memory is needed"
_ANY = 2**31  # examples per forward, if memory never ran out


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


@dataclass(frozen=True)
class Outcome:
    """The result of training. Scores are headline points on the tuning split. `conditions`: as in `state.Progress`, the latest last."""

    steps: int
    best_step: int | None
    best_score: float | None
    history: list[dict[str, float]]
    conditions: list[dict[str, Any]]


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
    on_notice: Callable[[str], None] = lambda line: None,
    checkpoint_seconds: float = 60.0,
    sharded: bool = False,
    conditions: Mapping[str, Any] | None = None,
) -> Outcome:
    """Train `model` in place; afterwards it has the weights to keep.

    `teacher` returns the objective's teacher features for a batch and its example indices. `evaluate` scores the model on the tuning split,
    in points and in fp32; without it the last weights are kept. State is saved in `work`, and an interrupted run continues from its last
    checkpoint bit for bit.

    Several processes all call this with the same arguments, and each takes its share of every batch; the first alone evaluates, writes to
    `work`, and calls `on_step` and `on_notice`. What stops one process stops all, at the same step. `sharded`: each process holds a shard
    of the weights and optimizer state (`sharding`); `model` is not moved, and is filled at the end in the first process alone. Nothing
    else may compute with its weights.

    `conditions`: machine settings of the steps, such as threads, as JSON values; the outcome includes those of earlier parts. Raises
    `CheckFailed` on the first non-finite loss or gradient, before it reaches a weight; `Interrupted` after a stop signal, with the state
    saved; `CompressError` if there is no memory for one example or the step itself; and `ProcessLost`.
    """
    total = total_steps(settings, len(data))
    draw_quickly(model)
    # On the device and with autocast, but not wrapped; `data_parallel` explains why.
    place: Any = partial(accelerator.prepare_model, evaluation_mode=True)
    trained = sharding.shard_model(model, place, accelerator.device) if sharded else model
    place(model, device_placement=not sharded)
    loader = Loader(data, ahead=accelerator.device.type == "cuda")
    gradients = Gradients(trained, place(objective), accelerator, loader, teacher, settings.micro_batch_size)
    words = (
        WordTable()
        if sharded
        else cut_words(model, objective, data, lambda steps: left_by_decay(settings, steps, total))
    )
    optimizer = accelerator.prepare_optimizer(_optimizer(trained, objective, settings))
    run = _Run(gradients, optimizer, loader, settings, evaluate, work, total, model, words)
    torch.manual_seed(data_parallel.own_seed(data.seed))
    trained.train()
    try:
        run.resume()
        run.record_conditions(dict(conditions or {}))
        with signals.deferred(), loader:
            run.run_to_end(on_step, on_notice, checkpoint_seconds)
    finally:
        words.put_back(run.progress.step)
        model.forward = own_forward(model)
    run.load_best()
    progress = run.progress
    return Outcome(progress.step, progress.best_step, progress.best_score, progress.history, progress.conditions)


def _optimizer(model: nn.Module, objective: Objective, settings: Training) -> torch.optim.Optimizer:
    """Return AdamW with bias correction; no decay on biases and norms. Fused: one pass over the embedding table."""
    groups = []
    for decay, decays in ((settings.weight_decay, True), (0.0, False)):
        for module in (model, objective):  # separate groups: the model may be sharded, the objective is not
            own = [p for name, p in module.named_parameters() if p.requires_grad and _decays(name, p) is decays]
            groups += [{"params": own, "weight_decay": decay}] if own else []
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=True)


def _decays(name: str, parameter: nn.Parameter) -> bool:
    """Whether weight decay applies. XLNet's biases of queries are [head, head size]."""
    return parameter.ndim > 1 and not name.endswith("bias")


@dataclass
class _Run:
    """The state of one training run between steps. `model`: the one to keep, which is itself trained unless weights are sharded. `words`:
    its word table."""

    gradients: Gradients
    optimizer: torch.optim.Optimizer
    data: Loader
    settings: Training
    evaluate: Callable[[nn.Module], float] | None
    work: Path
    total: int
    model: nn.Module
    words: WordTable

    def __post_init__(self) -> None:
        self.progress = state.Progress()

    def run_to_end(
        self, on_step: Callable[[StepReport], None], notice: Callable[[str], None], checkpoint_seconds: float
    ) -> None:
        """Run the remaining steps, with checkpoints between them."""
        saved = time.monotonic()
        while self.progress.step < self.total:
            try:
                report = self.step()
            except torch.OutOfMemoryError as error:
                # The gradients fitted in memory; the rest depends on the number of weights, not on the batch.
                raise CompressError(f"step {self.progress.step + 1}: out of memory {_NO_ROOM}") from error
            if ranks.is_first():
                on_step(report)
            stop, due = self.agree(late=time.monotonic() - saved > checkpoint_seconds, notice=notice)
            last = self.progress.step == self.total  # later work may fail
            if stop or report.tuning is not None or due or last:
                self.save()
                saved = time.monotonic()
            if stop:
                message = f"stopped at step {self.progress.step} of {self.total}; the same command continues there"
                raise Interrupted(message, stop)

    def step(self) -> StepReport:
        """Take one optimizer step on one batch."""
        started = time.perf_counter()
        number = self.progress.step
        indices = self.data.indices(number)
        following = self.data.indices(number + 1) if number + 1 < self.total else None
        tokens = int(self.data.lengths(indices).sum())
        rate = learning_rate(self.settings, number, self.total)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        losses = self._check_losses(*self.gradients.compute(indices, following))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress.step = number + 1
        seconds = time.perf_counter() - started
        epoch = self.progress.step / len(self.data)
        tuning = self._maybe_evaluate()
        return StepReport(self.progress.step, self.total, epoch, losses, rate, len(indices), tokens, seconds, tuning)

    def _check_losses(self, names: list[str], terms: Tensor) -> dict[str, float]:
        """Return the losses of the batch after checking that they and the gradient are finite, and clip the gradient.

        Everything is read in one transfer, so that until then a GPU has a step's work queued. A finite loss can have a non-finite gradient,
        which AdamW would carry into every weight.
        """
        norm = sharding.clip(self.gradients.parameters, self.settings.max_grad_norm)
        *values, norm = torch.cat([terms.flatten(), norm[None]]).tolist()
        sums = np.array(values).reshape(-1, len(names)).sum(0).tolist()
        losses = dict(zip(names, sums, strict=True))
        advice = _ADVICE + _IN_BF16 * (self.gradients.accelerator.mixed_precision == "bf16")
        bad = [name for name, value in losses.items() if not np.isfinite(value)]
        if bad:
            raise CheckFailed(f"step {self.progress.step + 1}: loss {', '.join(bad)} is {losses[bad[0]]}; {advice}")
        if not np.isfinite(norm):
            raise CheckFailed(f"step {self.progress.step + 1}: the gradient's norm is {norm}; {advice}")
        return losses

    def agree(self, *, late: bool, notice: Callable[[str], None]) -> tuple[int, bool]:
        """Return what all processes do next: the signal that one of them stops for (0: none), and whether a checkpoint is due.

        They also continue with the smallest micro-batch that one of them needed.
        """
        micro, known = self.gradients.micro, self.progress.micro_batch_size
        votes = [signals.requested_signal() or 0, int(late and ranks.is_first()), -(micro or _ANY)]
        stop, due, smallest = ranks.largest(votes)
        if -smallest != (known or self.settings.micro_batch_size or _ANY):
            self.gradients.micro = self.progress.micro_batch_size = -smallest
            if ranks.is_first():
                notice(f"step {self.progress.step}: out of memory; it goes on with {-smallest} examples a forward")
        return stop, bool(due)

    def _maybe_evaluate(self) -> float | None:
        every = max(1, round(self.settings.evaluate_every * len(self.data)))
        step = self.progress.step
        if self.evaluate is None or (step % every and step != self.total):
            return None
        score = ranks.broadcast(self._score(self.evaluate))
        self.progress.history.append({"step": step, "score": score})
        best = self.progress.best_score
        if self.settings.keep == "last" or best is None or score > best:
            self.progress.best_score, self.progress.best_step = score, step
            self._write_best(step)
        return score

    def _score(self, evaluate: Callable[[nn.Module], float]) -> float:
        """Return the score from the first process; the others help to gather the weights."""
        first, home = ranks.is_first(), next(self.model.parameters()).device
        if self.gradients.sharded:
            sharding.gather(self.gradients.model, self.model if first else None)
        if not first:
            return 0.0
        with self.words.whole(self.progress.step), in_fp32(self.model):
            score = evaluate(self.model.to(self.gradients.accelerator.device))
        self.model.to(home)
        return score

    def _best_path(self, step: int) -> Path:
        return self.work / f"best-{step}.safetensors"

    def _write_best(self, step: int) -> None:
        with self.words.whole(self.progress.step):
            state.save_weights(self._best_path(step), self.gradients.modules)

    def save(self) -> None:
        """Save a checkpoint; only then delete weights that it no longer names."""
        own = {name: drawn.tolist() for name, drawn in state.generators().items()}
        everyone = ranks.gather(own)
        drawn = [{name: torch.tensor(values, dtype=torch.uint8) for name, values in each.items()} for each in everyone]
        path, to_file = self.work / "state.safetensors", self.words.to_file
        with self.words.whole(self.progress.step):
            state.save(path, self.progress, self.gradients.modules, self.optimizer, drawn, to_file)
        for path in self.work.glob("best-*.safetensors") if ranks.is_first() else ():
            if path != self._best_path(self.progress.best_step or 0):
                path.unlink()

    def resume(self) -> None:
        if ranks.is_first():
            self.work.mkdir(parents=True, exist_ok=True)
        path, rank = self.work / "state.safetensors", ranks.rank()
        progress = state.restore(path, self.gradients.modules, self.optimizer, rank, self.words.from_file)
        if len(set(ranks.gather(progress and progress.step))) > 1:
            raise CompressError(f"{path}: not the same file for every process; all nodes share the folder of --out")
        if progress is not None:
            self.progress = progress
            self.gradients.micro = progress.micro_batch_size or self.gradients.micro
        data_parallel.broadcast_weights(self.gradients.modules)

    def record_conditions(self, conditions: dict[str, Any]) -> None:
        """Record the machine settings of the remaining steps."""
        known = self.progress.conditions
        if self.progress.step < self.total or not known:
            self.progress.conditions = [*(each for each in known if each != conditions), conditions]

    def load_best(self) -> None:
        step, modules = self.progress.best_step, (self.model, self.gradients.objective)
        sharded, first = self.gradients.sharded, ranks.is_first()
        if step is None or step == self.progress.step:
            if sharded:
                sharding.gather(self.gradients.model, self.model if first else None)
            return
        if first:
            state.load_weights(self._best_path(step), modules)
        data_parallel.broadcast_weights(modules[1:] if sharded else modules)
