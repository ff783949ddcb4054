"""Render the results of distil_run.py as Markdown.

python benchmarks/peers/distil_page.py RESULT.json > PAGE.md
"""

from __future__ import annotations

import json
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from distil_variants import CASES, FIRST, candidates
from report import digits, table

GOAL = 1.5  # times TextBrewer's tokens per second

_HEAD = """# Distillation beside other libraries

`{command}`

{date}, {cpu}, {cores} usable core(s), {isa}; load average {load:.1f} before. {note}

The teacher is MiniLM-L6 (6 x 384), fine-tuned on {task}; the student its layers 1, 3 and 5 with its head, the same weights in
every candidate. {examples:,} texts of {task}, {epochs} epochs of {steps} batches of {batch_size}, {threads} thread(s), fp32. AdamW at
{learning_rate:g} with a warm-up of a tenth and linear decay, weight decay 0.01 (ours and the Trainer's leave out biases and norms, as
they do by default), gradients clipped to 1, dropout 0.1. {rounds} round(s), each with a seed of its own and in random order.

* Tokens are real ones, without padding, per second of CPU time of the whole training: from the first token that a model reads
  to the last optimizer step. What the teacher answers before the first step is in it. Medians of rounds; in brackets the smallest and
  the largest.
* `times ours` is how often as fast `{first}` is, by that rate.
* A step is the median of the CPU seconds between two optimizer steps. `before` are those to the end of the first step, less such a
  step: what is done once.
* MiB is the peak of the process up to the last step. The score is the accuracy on {tuning:,} tuning texts, in points, the mean of the
  rounds; all students are scored by the same code. After so few steps it says that they train, and little more.
* Lines are those that a user writes for both cases, without blank ones, comments and the text that a file begins with.
  Those of the three libraries hold {parts} for tokens, models and attention scores, which are the same in each.

"""


def render(result: dict[str, Any]) -> str:
    return "\n".join([_head(result), *(_case(case, result) for case in CASES), _goal(result), _notes(result)])


def _head(result: dict[str, Any]) -> str:
    machine, job = result["machine"], result["job"]
    return _HEAD.format(
        **{name: result[name] for name in ("command", "date", "task", "load", "note")},
        **job,
        **{name: machine[name] for name in ("cpu", "cores")},
        isa=", ".join(machine["isa"]),
        steps=-(-job["examples"] // job["batch_size"]),
        rounds=1 + max((run["round"] for run in result["runs"]), default=-1),
        first=FIRST,
        tuning=result["tuning"],
        parts=result["parts"],
    )


def rate(run: dict[str, Any]) -> float:
    """Return real tokens per second of CPU time, over the whole training."""
    return run["real"] / (run["clocks"][-1][0] - run["clocks"][0][0])


def step_seconds(run: dict[str, Any]) -> float:
    """Return the median of the CPU seconds from one optimizer step to the next."""
    ends = [cpu for cpu, _ in run["clocks"][1:]]
    return statistics.median(after - before for before, after in pairwise(ends))


def before_seconds(run: dict[str, Any]) -> float:
    """Return the CPU seconds up to the end of the first step, less one step."""
    return run["clocks"][1][0] - run["clocks"][0][0] - step_seconds(run)


def _runs(result: dict[str, Any], case: str, name: str) -> list[dict[str, Any]]:
    return [run for run in result["runs"] if run["case"] == case and run["candidate"] == name]


def _rate(result: dict[str, Any], case: str, name: str) -> float | None:
    rates = [rate(run) for run in _runs(result, case, name)]
    return statistics.median(rates) if rates else None


def _case(case: str, result: dict[str, Any]) -> str:
    rows, first = [], _rate(result, case, FIRST)
    for one in candidates():
        if case not in one.cases or not (runs := _runs(result, case, one.name)):
            continue
        rows.append([one.name, *_cells(runs, first or float("nan")), str(result["lines"][one.peer])])
    heads = [
        "candidate",
        "padding",
        "tokens/s",
        "examples/s",
        "times ours",
        "s a step",
        "before, s",
        "MiB",
        "score",
        "lines",
    ]
    return f"## {CASES[case]}\n\n{table(heads, rows)}\n"


def _cells(runs: list[dict[str, Any]], first: float) -> list[str]:
    rates = [rate(run) for run in runs]
    middle = statistics.median(rates)
    examples = statistics.median(rate(run) * run["examples"] / run["real"] for run in runs)
    scores = [run["score"] for run in runs if run["score"] is not None]
    return [
        f"{statistics.fmean(1 - run['real'] / run['padded'] for run in runs):.0%}",
        f"{middle:,.0f} ({min(rates):,.0f} to {max(rates):,.0f})",
        digits(examples),
        f"{first / middle:.2f}",
        f"{statistics.median(map(step_seconds, runs)):.3f}",
        f"{statistics.median(map(before_seconds, runs)):.1f}",
        f"{max(run['peak_mib'] for run in runs):,.0f}",
        f"{statistics.fmean(scores):.1f}" if scores else "–",
    ]


def _goal(result: dict[str, Any]) -> str:
    """Return the section with our speed over each TextBrewer variant's, and whether it reaches the goal."""
    lines = []
    for case in CASES:
        first = _rate(result, case, FIRST)
        for one in candidates():
            other = _rate(result, case, one.name) if one.peer == "distil_textbrewer" and case in one.cases else None
            if first and other:
                reached = "reached" if first / other >= GOAL else "missed"
                lines.append(f"* {case}, {one.name}: {first / other:.2f} times, {reached}")
    return f"## The goal: {GOAL} times TextBrewer\n\n" + "\n".join(lines) + "\n"


def _notes(result: dict[str, Any]) -> str:
    lines = [f"* {one.name}: {one.what}." for one in candidates()]
    versions = {name: version for packages in result["versions"].values() for name, version in packages.items()}
    lines.append("* Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + ".")
    lines += [f"* {name} did not run: {reason}" for name, reason in result["failed"].items()]
    return "## The candidates\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(render(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
