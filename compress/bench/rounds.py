"""Timed rounds, in each of which every model runs once, and the rules for when to stop."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .process import Child, Times
from .spec import BenchSpec, Candidate, Rigor, Shape

MIN_RUNS = 3
# Time limits per shape, for all candidates together; large batches of large models reach them, but have at least MIN_RUNS.
SECONDS_SINGLE, SECONDS_BATCH = 60.0, 20.0
SECONDS_WARMUP = 1.0

Input = Callable[[Candidate], list[int]]  # the tokens of each text of one run
Series = dict[str, list[Times]]  # of each model, one entry per round
Enough = Callable[[Series], bool]


@dataclass(frozen=True)
class Plan:
    """A row of the results: its shape, (0, 0) for the task's own lengths, and the inputs to run."""

    shape: Shape
    inputs: tuple[Input, ...]

    @property
    def title(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]}" if self.shape[0] else "the task's own lengths"

    @property
    def texts(self) -> int:
        """Number of texts in one run."""
        return max(1, self.shape[0])

    def runs(self, least: int) -> int:
        """Round `least` up, so that each input is run equally often."""
        return -(-least // len(self.inputs)) * len(self.inputs)

    def longest(self, candidate: Candidate) -> list[int]:
        return max((rows(candidate) for rows in self.inputs), key=max)

    def passes(self) -> Iterator[Input]:
        """Yield all inputs in random order, again and again, so that any prefix is a fair sample."""
        order = random.Random(0)
        while True:
            yield from order.sample(self.inputs, len(self.inputs))


def plans(spec: BenchSpec) -> list[Plan]:
    rows = [Plan((batch, length), (lambda _, rows=[length] * batch: rows,)) for batch, length in spec.shapes]
    if spec.lengths:
        texts = range(len(spec.lengths))
        own = tuple(lambda who, text=text: [(who.lengths or spec.lengths)[text]] for text in texts)
        rows.append(Plan((0, 0), own))
    return rows


def warm_up(children: Sequence[Child], plan: Plan, most: int) -> None:
    """Run untimed rounds for about a second: at least one, at most `most`."""
    start = time.monotonic()
    for number in range(most):
        if number and time.monotonic() - start > SECONDS_WARMUP:
            return
        for child in children:
            child.warm(plan.inputs[0](child.candidate))


def time_rounds(children: Sequence[Child], inputs: Iterable[Input], enough: Enough, seed: int) -> Series:
    """Run timed rounds until `enough` says so."""
    times: Series = {child.name: [] for child in children}
    order, turns = random.Random(seed), iter(inputs)
    while not enough(times):
        rows = next(turns)
        for child in order.sample(children, len(children)):
            times[child.name].append(child.run(rows(child.candidate)))
    return times


def by_runs(plan: Plan, least: int, is_narrow: Enough) -> Enough:
    """Return a rule to stop after `least` runs, rounded up to whole passes; or at the time limit, or once a test (`is_check`) finds narrow
    intervals."""
    from .intervals import is_check

    most, seconds = plan.runs(least), SECONDS_SINGLE if plan.shape[0] <= 1 else SECONDS_BATCH
    start = time.monotonic()

    def enough(times: Series) -> bool:
        number = _count(times)
        late = number >= MIN_RUNS and time.monotonic() - start > seconds
        return number >= most or late or (is_check(number) and is_narrow(times))

    return enough


@dataclass
class Tally:
    """Totals of a shape over all starts so far: texts per model, and milliseconds of each model's runs."""

    texts: int = 0
    milliseconds: dict[str, float] = field(default_factory=dict)

    def add(self, texts: int, one: Mapping[str, Times]) -> None:
        self.texts += texts
        for name, times in one.items():
            self.milliseconds[name] = self.milliseconds.get(name, 0.0) + times.wall


def by_rigor(plan: Plan, rigor: Rigor, start: int, tally: Tally) -> Enough:
    """Return a rule to stop once a shape has (start + 1) / starts of its texts and of each model's time; it updates `tally`.

    Each start has at least `MIN_RUNS` rounds, even if earlier starts did all that was required.
    """
    part = (start + 1) / rigor.starts
    seen = 0

    def enough(times: Series) -> bool:
        nonlocal seen
        number = _count(times)
        for index in range(seen, number):
            tally.add(plan.texts, {name: values[index] for name, values in times.items()})
        seen = number
        least = min(tally.milliseconds.values(), default=0.0)
        done = tally.texts >= rigor.queries * part and least >= rigor.seconds * 1000 * part
        return number >= MIN_RUNS and done

    return enough


def _count(times: Series) -> int:
    return len(next(iter(times.values())))
