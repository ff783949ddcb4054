"""Measure all candidates that take texts, in a process each: their answers, all texts in one call, and single texts from several
callers."""

from __future__ import annotations

import importlib
import os
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from inputs import clock
from process import start

from compress.errors import CompressError
from compress.processes.worker import Worker

OURS = "text_ours"
FIRST, AGAIN = "Classifier int8", "Classifier int8, again"
REFERENCE = "transformers pipeline, torch fp32"  # the others' answers are compared with its
CALLERS = (1, 4, 16)
TRIED = 300  # texts for choosing the fastest way
BY_CALLER = "sorted"  # in the name of a way that its user must implement; it is reported, but never chosen
_CHECKED = 64  # texts whose answers are compared
_CHILD = Path(__file__).with_name("text_child.py")

Say = Callable[..., None]


@dataclass(frozen=True)
class Candidate:
    """`peer`: its module here. `python`: the interpreter that runs it."""

    name: str
    peer: str
    python: Path

    @property
    def ways(self) -> Mapping[str, str]:
        return importlib.import_module(self.peer).WAYS

    def child(self, threads: int) -> Worker:
        return start(self.python, self.peer, threads, ours=self.peer == OURS, program=_CHILD)


def measure(
    candidates: Sequence[Candidate], model: Path, threads: int, texts: int, rounds: int, requests: int, say: Say
) -> dict[str, Any]:
    """Return the machine's `load` before, then `correlation`, `ways`, `whole` and `callers` by candidate, and `failed`. The first candidate
    runs a second time as AGAIN."""
    load = os.getloadavg()[0]
    with ExitStack() as stack:
        children = _Children(stack, candidates, model, threads, say)
        answers = children.each("probabilities", count=_CHECKED)
        ways = _ways(children, min(TRIED, texts))
        taken = {name: fastest(times, threads) for name, times in ways.items()}
        whole = children.each("many", {name: {"way": way} for name, way in taken.items()}, count=texts)
        callers = {count: _callers(children, count, rounds, requests) for count in CALLERS}
    return {
        "threads": threads,
        "load": load,
        "texts": texts,
        "tried": min(TRIED, texts),
        "correlation": _correlation(answers),
        "ways": ways,
        "taken": taken,
        "whole": whole,
        "callers": callers,
        "failed": children.failed,
    }


def short_text(first: Candidate, model: Path, words: int, repeats: int) -> dict[str, float]:
    """Return the microseconds of each part of FIRST's answer to one text, with one thread."""
    with first.child(1) as child:
        return child.ask("part_times", variant=FIRST, words=words, repeats=repeats, **_files(model))


def _files(model: Path) -> dict[str, str]:
    """Return the files' arguments for the children."""
    return {"model": str(model.absolute()), "texts": str(model.absolute() / "texts.json")}


def fastest(ways: dict[str, dict[str, float]], threads: int) -> str:
    """Return the fastest way that the peer's interface offers."""
    return min((way for way in ways if BY_CALLER not in way), key=lambda way: ways[way][clock(threads)])


class _Children:
    """The running processes, by name; `failed`: why the others stopped."""

    def __init__(self, stack: ExitStack, candidates: Sequence[Candidate], model: Path, threads: int, say: Say) -> None:
        self.failed: dict[str, str] = {}
        self.running: dict[str, Worker] = {}
        self._order, self._say = random.Random(0), say
        named = {candidate.name: candidate for candidate in candidates}
        self.candidates = named | {AGAIN: named[FIRST]}
        for name, candidate in self.candidates.items():
            self.running[name] = stack.enter_context(candidate.child(threads))
            self.ask(name, "load", variant=candidate.name, threads=threads, **_files(model))

    def ask(self, name: str, do: str, **arguments: Any) -> Any:
        """Return the answer; None after a failure, which ends the process."""
        if name not in self.running:
            return None
        self._say(name, do, *map(str, arguments.values()))
        try:
            return self.running[name].ask(do, **arguments)
        except CompressError as error:
            self.failed[name] = str(error)
            self.running.pop(name).__exit__()
            return None

    def each(self, do: str, own: Mapping[str, Mapping[str, Any]] | None = None, **arguments: Any) -> dict[str, Any]:
        """Return the answers of all, requested in a new random order; `own`: extra arguments by name."""
        order = self._order.sample([*self.running], len(self.running))
        answers = {name: self.ask(name, do, **arguments, **(own or {}).get(name, {})) for name in order}
        return {name: answers[name] for name in self.candidates if name in self.running and name in answers}


def _ways(children: _Children, count: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return name -> way -> seconds, after a warm-up run."""
    way_times = {}
    for name, candidate in children.candidates.items():
        children.ask(name, "many", count=count, way=next(iter(candidate.ways)))
        way_times[name] = {way: children.ask(name, "many", count=count, way=way) for way in candidate.ways}
    return {name: ways for name, ways in way_times.items() if name in children.running}


def _callers(children: _Children, callers: int, rounds: int, requests: int) -> dict[str, dict[str, float]]:
    """Return medians of the rounds by name: milliseconds of a request, answers per second, and the number of failed requests."""
    samples = [children.each("calls", callers=callers, requests=requests) for _ in range(rounds)]
    return {name: _summary([sample[name] for sample in samples]) for name in samples[-1]}


def _summary(samples: list[dict[str, Any]]) -> dict[str, Any]:
    answered = [sample for sample in samples if sample["p50"] is not None]
    times = {key: 1000 * statistics.median(sample[key] for sample in answered) for key in ("p50", "p99") if answered}
    return {
        **times,
        "per_second": statistics.median(sample["answered"] / sample["wall"] for sample in samples),
        "failed": sum(sample["failed"] for sample in samples),
        "raised": next((text for sample in samples for text in sample["raised"]), None),
        "samples": samples,
    }


def _correlation(answers: dict[str, list[float]]) -> dict[str, float]:
    """Return the correlation of each candidate's probabilities with those of REFERENCE; empty without REFERENCE."""
    if REFERENCE not in answers:
        return {}
    return {
        name: float(np.corrcoef(probabilities, answers[REFERENCE])[0, 1]) for name, probabilities in answers.items()
    }
