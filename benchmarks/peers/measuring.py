"""Measure all candidates in turn, in a process each, started several times: first agreement with torch, then the cells, in rounds of random
order."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from candidates import Candidate
from heads import Head
from inputs import CELLS, checked, clock
from process import ANSWER_SECONDS

from compress.errors import CompressError
from compress.processes.worker import Worker

AGAIN = "first of ours, again"
# A candidate below this correlation with torch computes something else. The threshold is below the poorest int8, above a model
# that treats padding as tokens.
LEAST_CORRELATION = 0.75
# The best way is searched twice, the second time among those near the best; a run this long needs no warm-up.
_NEAR_BEST, _LONG_MS = 1.2, 3000.0
_CHEAP = 5  # factor on the rounds for cells of a single sequence

Say = Callable[[str], None]
Samples = dict[str, list[dict[str, float]]]


def measure(
    candidates: Sequence[Candidate],
    head: Head,
    reference: np.ndarray,
    threads: int,
    rounds: int,
    say: Say,
    seconds: float = ANSWER_SECONDS,
    starts: int = 1,
) -> dict[str, Any]:
    """Return `agreement`, `cells` and `failed` of one model at `threads`; the first candidate runs a second time as AGAIN.

    `reference`: torch's fp32 logits of the checked batch, [sequence, …]. A candidate that fails, disagrees, or takes longer than `seconds`
    for one answer is dropped, and `failed` says why. Two processes of one candidate may differ in all of their rounds, so all are started
    `starts` times, with `rounds` in each.
    """
    failed: dict[str, str] = {}
    agreement: dict[str, dict[str, float]] = {}
    ways: dict[str, dict[str, int]] = {}
    samples: dict[str, Samples] = {cell: {} for cell in CELLS}
    for number in range(starts):
        with ExitStack() as stack:
            children = _Children(stack, candidates, threads, failed, seconds, number)
            if not number:
                agreement = {name: _agreement(head, reference, logits) for name, logits in children.each("logits")}
                for name, comparison in agreement.items():
                    if not comparison["correlation"] >= LEAST_CORRELATION:
                        children.drop(
                            name, f"not timed: its answers correlate at {comparison['correlation']:.2f} with torch's"
                        )
            for cell in CELLS:
                say(f"start {number + 1} of {starts}: {cell}")
                ways[cell] = _cell(children, cell, ways.get(cell), rounds, clock(threads), samples[cell])
    cells = {cell: _summed(cell_samples, ways[cell], failed) for cell, cell_samples in samples.items()}
    return {"threads": threads, "agreement": agreement, "cells": cells, "failed": failed}


def _summed(samples: Samples, ways: dict[str, int], failed: dict[str, str]) -> dict[str, Any]:
    """Return a cell's medians over the rounds of all starts, for the candidates that completed all of them."""
    return {
        name: {"way": ways[name], **{kind: _median(times, kind) for kind in ("wall", "cpu")}, "samples": times}
        for name, times in samples.items()
        if name not in failed
    }


class _Children:
    """The running processes, by name."""

    def __init__(
        self,
        stack: ExitStack,
        candidates: Sequence[Candidate],
        threads: int,
        failed: dict[str, str],
        seconds: float,
        seed: int,
    ) -> None:
        self.failed, self.order = failed, random.Random(seed)
        self.running: dict[str, Worker] = {}
        named = {candidate.name: candidate for candidate in candidates} | {AGAIN: candidates[0]}
        for name in self.order.sample([*named], len(named)):
            candidate = named[name]
            if name in failed:
                continue
            self.running[name] = stack.enter_context(candidate.child(threads, seconds))
            with self.watched(name):
                self.running[name].ask(
                    "load", variant=candidate.name, out=str(candidate.folder.absolute()), threads=threads
                )

    @contextmanager
    def watched(self, name: str) -> Iterator[None]:
        try:
            yield
        except CompressError as error:
            self.drop(name, str(error))

    def drop(self, name: str, reason: str) -> None:
        self.failed[name] = reason
        self.running.pop(name).__exit__()

    def each(self, do: str) -> Iterator[tuple[str, Any]]:
        for name in [*self.running]:
            with self.watched(name):
                yield name, self.running[name].ask(do)

    def run(self, requests: Sequence[tuple[str, int]], cell: str) -> Iterator[tuple[str, int, dict[str, float]]]:
        """Run each (name, way) once, in a new random order, without those that have failed."""
        for name, way in self.order.sample(requests, len(requests)):
            if name in self.running:
                with self.watched(name):
                    yield name, way, self.running[name].ask("run", cell=cell, way=way)


def _agreement(head: Head, reference: np.ndarray, logits: list[Any]) -> dict[str, float]:
    """Compare real tokens: largest difference of a logit, correlation as defined by `head`, share of equal decisions."""
    actual, mask = np.array(logits), checked().mask
    apart = np.abs(actual - reference)
    (mine, my_decisions), (theirs, their_decisions) = (head.compared(values, mask) for values in (reference, actual))
    return {
        "largest_difference": float((apart[mask == 1] if apart.ndim > 2 else apart).max()),
        "correlation": float(np.corrcoef(mine, theirs)[0, 1]),
        "decisions": float((my_decisions == their_decisions).mean()),
    }


def _cell(
    children: _Children, cell: str, ways: dict[str, int] | None, rounds: int, clock: str, samples: Samples
) -> dict[str, int]:
    """Return the way of each candidate, from an earlier start or searched here; add the times of the rounds to `samples`."""
    if ways is None:
        ways = _best_ways(children, cell, clock)
    else:
        for _ in children.run([*ways.items()], cell):  # warm-up, not timed
            pass
    for _ in range(rounds * (1 if len(CELLS[cell]) > 1 else _CHEAP)):
        for name, _, times in children.run([*ways.items()], cell):
            samples.setdefault(name, []).append(times)
    return ways


def _median(times: list[dict[str, float]], kind: str) -> float:
    return statistics.median(sample[kind] for sample in times)


def _best_ways(children: _Children, cell: str, clock: str) -> dict[str, int]:
    """Return the fastest way of each candidate. The first run of a way may include compilation, so all but long or clearly slower ones run
    twice."""
    way_times: dict[str, dict[int, float]] = {name: {} for name in children.running}
    everything = [(name, way) for name in children.running for way in CELLS[cell]]
    for name, way, times in children.run(everything, cell):
        way_times[name][way] = times[clock]
    if len(CELLS[cell]) > 1:
        again = [(name, way) for name in way_times for way in _near_best(way_times[name])]
        for name, way, times in children.run(again, cell):
            way_times[name][way] = min(way_times[name][way], times[clock])
    return {name: min(ways, key=lambda way: ways[way]) for name, ways in way_times.items() if name in children.running}


def _near_best(times: dict[int, float]) -> list[int]:
    best = min(times.values(), default=0.0)
    return [way for way, time in times.items() if time < best * _NEAR_BEST and time < _LONG_MS]
