"""Training time of a plan: its steps and FLOPs, and the rate that this machine reached before or in a short probe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..catalog import names
from ..corpus.sources import FileSource
from ..losses import LOSSES
from ..machine import BF16_PEAKS, memory_bytes, training_gpu
from ..models.dimensions import Dimensions
from ..spec.kinds import KINDS
from ..spec.stages import OnText, QuantizeAware
from ..store import Store
from ..tasks import QuerySampler
from .lengths import read_length, stage_length, teacher_length, windows_per_example
from .memory import Memory, stage_memory, stage_precision
from .plan import Node, Plan
from .plan.sources import TaskSource
from .plan.teachers import ENSEMBLE
from .recorded_rates import rate_like, recorded_rates
from .stages.augment import AUGMENTED
from .training.log import saved_step

_BYTES_PER_TOKEN = 4.5  # of English text
_PACKED = {".xz": 4.0, ".gz": 3.0, ".zst": 3.5}  # bytes of text per byte of such a file, roughly
UTILISATION = 0.25  # of a GPU's bf16 peak, if nothing was measured: an assumption, for encoders on short texts
_LONG = 2 * 3600.0  # seconds; above this, a smaller recipe is suggested


@dataclass(frozen=True)
class Work:
    """A training stage that is not finished. `steps`: optimizer steps left; None if that is known only once the text is read. `flops`:
    FLOPs of their matmuls."""

    key: str
    label: str
    stage: str
    steps: int | None
    flops: float
    model: Dimensions
    precision: str
    memory: Memory


@dataclass(frozen=True)
class Estimate:
    """What is left to train of one or several plans. `rates`: FLOP/s by stage key, where this machine has trained a similar model.
    `device`: the GPU that trains, None for the CPU. `side_by_side`: bytes of stages that may train at once, the largest of each plan."""

    work: tuple[Work, ...]
    rates: dict[str, float]
    smaller: str | None = None
    by: str = "what it trained before"
    device: str | None = None
    side_by_side: tuple[int, ...] = ()

    @cached_property
    def seconds(self) -> float | None:
        """Seconds for all stages whose number of steps is known; None if there is none, or if the rate of one is unknown."""
        known = [work for work in self.work if work.steps is not None]
        if not known or any(work.key not in self.rates for work in known):
            return None
        return sum(work.flops / self.rates[work.key] for work in known)

    def fits(self, jobs: int) -> bool:
        """Whether the CPU's memory suffices for the `jobs` largest stages at once; True on a GPU, whose memory is not known here."""
        return self.device is not None or self._most_memory(jobs) <= memory_bytes()

    def memory_line(self, jobs: int = 1) -> str | None:
        """Return a line on the memory that the largest stage needs, that `jobs` of them need at once, and that is available; None if
        nothing is left to train."""
        if not self.work:
            return None
        work = max(self.work, key=lambda work: work.memory.total)
        memory, room = work.memory, memory_bytes()
        here = f"on {self.device}" if self.device else f"this machine has {_gb(room)} GB"
        parts = {"weights": memory.weights, "gradients": memory.gradients, "AdamW": memory.optimizer}
        parts |= {"activations": memory.activations} | ({"teacher": memory.teacher} if memory.teacher else {})
        text = f"memory: about {_gb(memory.total)} GB for {work.label} ({', '.join(f'{k} {_gb(v)}' for k, v in parts.items())})"
        text += f", {memory.examples} texts of {memory.length} tokens per forward pass"
        several = min(jobs, len(self.side_by_side))
        text += f"; up to {_gb(self._most_memory(jobs))} GB for {several} stages at once" if several > 1 else ""
        text += f"; {here}"
        if not self.fits(1):
            text += f": not enough; lower micro_batch_size of {work.stage}, or max_length"
        elif not self.fits(jobs):
            text += ": not enough for these at once; lower --jobs"
        return text

    def _most_memory(self, jobs: int) -> int:
        return sum(sorted(self.side_by_side, reverse=True)[:jobs])

    def __str__(self) -> str:
        """`training: 1,240 steps, about 12 min on this machine`."""
        if not self.work:
            return "training: none"
        known = sum(work.steps or 0 for work in self.work)
        unknown = [work.label for work in self.work if work.steps is None]
        words = [f"{known:,} steps"] if known else []
        if self.seconds is not None:
            words.append(f"{format_duration(self.seconds)} on this machine, judging by {self.by}")
        elif known:
            words.append("no such model has been trained here yet: `run` measures how long it takes")
        words += [f"{', '.join(unknown)} as long as the text"] if unknown else []
        text = f"training: {', '.join(words)}"
        if self.smaller is not None and self.seconds is not None and self.seconds > _LONG:
            text += f"; recipe {self.smaller} is smaller"
        return text


def _gb(count: float) -> str:
    """Gigabytes of 10⁹ bytes."""
    return f"{count / 1e9:.2g}" if count < 1e10 else f"{count / 1e9:,.0f}"


def data_line(task: TaskSource) -> str:
    """`data: 360 train, 40 tuning texts; classification, 4 labels`. Reads the data."""
    data, spec = task.data, task.spec
    what = "questions" if KINDS[spec.kind].unit == "question" else "pairs" if len(spec.text) > 1 else "texts"
    labels = f", {len(data.labels)} labels" if KINDS[spec.kind].named_labels else ""
    return f"data: {len(data.train):,} train, {len(data.tuning):,} tuning {what}; {spec.kind}{labels}"


def format_duration(seconds: float) -> str:
    """Spell a duration as `about 12 min`, `about 3.5 h` or `about 2 days`, no more precisely than it is known."""
    if seconds < 60:
        return "less than a minute"
    if seconds < 100 * 60:
        return f"about {round(seconds / 60)} min"
    hours = seconds / 3600
    if hours < 48:
        return f"about {hours:.1f} h" if hours < 10 else f"about {round(hours)} h"
    return f"about {round(hours / 24)} days"


def estimate(plans: Iterable[Plan], root: Path, *, assume: bool = False) -> Estimate:
    """Return what is left to train, and how long it takes by the rates recorded in the store in `root`. Reads the data; computes nothing.

    `assume`: if no rate is recorded, assume that a GPU with a known bf16 peak reaches `UTILISATION` of it.
    """
    plans, cache = list(plans), Store.of_runs(root)
    gpu = training_gpu()
    work = {node.key: (plan, node) for plan in plans for node in plan.nodes if node.kind.trains}
    left = tuple(
        _work(plan, node, done=saved_step(cache.work(key)) or 0, gpu=gpu is not None)
        for key, (plan, node) in work.items()
        if not cache.has(key)
    )
    precision = plans[0].precision if plans else ""
    known = recorded_rates(cache, "cpu" if gpu is None else "cuda") if left else []
    rates = {each.key: rate for each in left if (rate := rate_like(known, each.model, each.precision)) is not None}
    smaller = [name for plan in plans if (name := smaller_recipe(plan.recipe.name))]
    outlook = Estimate(
        left, rates, smaller[0] if smaller else None, device=gpu, side_by_side=_side_by_side(plans, left)
    )
    peak = BF16_PEAKS.get(gpu or "") if assume and precision == "bf16" else None
    if peak is None or all(work.key in rates for work in left):
        return outlook
    assumed = {work.key: UTILISATION * peak for work in left} | rates
    return replace(outlook, rates=assumed, by=f"an assumed {UTILISATION:.0%} of its bf16 peak")


def _side_by_side(plans: Iterable[Plan], left: Sequence[Work]) -> tuple[int, ...]:
    """Bytes of the largest stage of each plan, counted once if several plans share it: stages of one plan mostly follow each other."""
    totals = {work.key: work.memory.total for work in left}
    trained = [[node.key for node in plan.nodes if node.key in totals] for plan in plans]
    largest = {max(keys, key=lambda key: totals[key]) for keys in trained if keys}
    return tuple(totals[key] for key in largest)


def smaller_recipe(name: str) -> str | None:
    """Return the catalogue's recipe of the same method on a smaller budget, None if there is none."""
    stem = name.removesuffix("-general")
    known = names("recipes")
    return next((other for other in (f"{stem}-small", stem) if other in known and other != name), None)


def _work(plan: Plan, node: Node[Any], *, done: int, gpu: bool) -> Work:
    """`done`: steps that an interrupted training has saved."""
    spec, model = node.spec, plan.sizes_of(node)
    examples = _examples(plan, node)
    length = stage_length(plan, node)
    losses = getattr(spec, "losses", ())
    has_teacher = any(loss.weight > 0 and LOSSES[loss.name].needs_teacher for loss in losses)
    each, once = 3 * model.flops_per_example(length), 0.0
    size = _batch(plan, node)
    steps = None if examples is None else max(1, round(spec.epochs * math.ceil(examples / size)))
    if spec.max_steps is not None:
        steps = spec.max_steps if steps is None else min(steps, spec.max_steps)
    if ENSEMBLE in node.inputs:
        once = _of_tables(plan, node)
    elif has_teacher:
        forward = _teacher_forward(plan, node, length)
        table = examples is not None and _answers_once(plan, node)
        once, each = ((examples or 0) * forward, each) if table else (0.0, each + forward)
    steps = None if steps is None else max(1, steps - done)
    flops, memory = (steps or 0) * size * each + once, stage_memory(plan, node, gpu=gpu)
    return Work(node.key, node.label, node.stage, steps, flops, model, stage_precision(plan, node), memory)


def _teacher_forward(plan: Plan, node: Node[Any], length: float) -> float:
    """FLOPs of the teacher's forward on an example of `length` student tokens."""
    if isinstance(node.spec, QuantizeAware):  # its teacher is its own fp32 model
        return plan.sizes_of(node).flops_per_example(length)
    return plan.sizes["teacher"].flops_per_example(teacher_length(plan, node, length))


def epoch_steps(plan: Plan, node: Node[Any]) -> int:
    """Optimizer steps of one pass over the task's examples. Reads the data."""
    return math.ceil(_task_examples(plan, node) / _batch(plan, node))


def _answers_once(plan: Plan, node: Node[Any]) -> bool:
    """Whether the teacher predicts every example once, before training; `training.teacher_targets.answers_once` decides the same by an
    objective."""
    spec = node.spec
    read = {loss.name for loss in spec.losses if loss.weight > 0 and LOSSES[loss.name].needs_teacher}
    if isinstance(spec, OnText) or any(LOSSES[name].reads != "logits" for name in read):
        return False
    unit = KINDS[plan.task.spec.kind].unit
    if unit == "word":  # a text has tokens besides those of its words, and no table of answers holds them
        return not plan.shares_tokenizer and not isinstance(spec, QuantizeAware)
    whole = spec.max_steps is None or spec.max_steps >= epoch_steps(plan, node)
    return spec.epochs >= 1 and whole


def _of_tables(plan: Plan, node: Node[Any]) -> float:
    """FLOPs for several teachers to predict each of the stage's examples once."""
    lengths = {name: read_length(plan, node, source) for name, source in plan.teachers.items()}
    each = sum(plan.sizes[name].flops_per_example(length) for name, length in lengths.items())
    return (_examples(plan, node) or 0) * each


def _examples(plan: Plan, node: Node[Any]) -> int | None:
    """Examples of an epoch; None if that is not known before the text is read."""
    if not isinstance(node.spec, OnText):
        return _task_examples(plan, node)
    tokens = node.spec.max_tokens
    sources = plan.corpus.sources if plan.corpus else ()
    if all(isinstance(source, FileSource) for source in sources):
        total = sum(_bytes(source.path) for source in sources if isinstance(source, FileSource)) / _BYTES_PER_TOKEN
        tokens = round(min(total, tokens or total))
    return None if tokens is None else max(1, round(tokens / stage_length(plan, node)))


def _task_examples(plan: Plan, node: Node[Any]) -> int:
    count = round(len(plan.task.data.train) * windows_per_example(plan, node))
    copies = next((getattr(other.spec, "copies", 0) for other in plan.nodes if other.id == AUGMENTED), 0)
    return count * (1 + copies) if AUGMENTED in node.inputs else count


def _batch(plan: Plan, node: Node[Any]) -> float:
    """Examples per batch, on average: the batch size, except where batches hold whole queries, which seldom fill them."""
    size = node.spec.batch_size
    if isinstance(node.spec, OnText) or not KINDS[plan.task.spec.kind].grouped or size < 2:
        return size
    train = plan.task.data.train
    return len(train) / len(QuerySampler(train.labels, size, seed=0))


def _bytes(path: Path) -> float:
    return path.stat().st_size * _PACKED.get(path.suffix, 1.0)
