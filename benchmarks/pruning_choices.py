"""Compare the scores that heads and neurons are pruned by, at the same budgets, on tuning splits.

    python benchmarks/pruning_choices.py --data-dir GLUE --task mrpc --task rte --out runs --report reports/pruning-choices.md

Teachers are from `compress run prune-int8`; models already trained are taken from the store in OUT. Nothing is exported. No reported split
is read, because these figures choose a default. Divergence compares the outputs with the unpruned teacher's: KL in nats, for a regression
the mean squared difference.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from records import add_json, code_line, write_json

from compress.files.atomic import write_text
from compress.files.paths import display_path
from compress.pipeline import Request, build_stage
from compress.results import Machine

SCORES = ("fisher", "obs")
HEADINGS = (
    "Task", "Budget", "Judged by", "Pruned", "Repaired", "Against the whole, points, 95% interval", "Decided alike",
    "Divergence, pruned / repaired",
)  # fmt: skip


def pruned(task: str, score: str, arguments: argparse.Namespace) -> dict[str, Any]:
    settings = {
        "prune.score": score,
        "prune.flops": [float(each) for each in arguments.flops.split(",")],
        "prune.examples": arguments.examples,
    }
    overrides = [f"{name}={value}" for name, value in settings.items()]
    overrides += [words for name, _, words in (each.partition(":") for each in arguments.set) if name == task]
    request = Request(
        ("prune-int8",), (task,), data_dir=arguments.data_dir, root=arguments.out, bench=None, threads=1,
        overrides=tuple(overrides),
    )  # fmt: skip
    return {"task": task, **build_stage(request, "teacher-pruned").info}


def lines(info: dict[str, Any]) -> list[str]:
    rows = []
    for point in info["points"]:
        delta, same = point["delta"], point["repaired_same"]
        cells = (
            info["task"],
            f"{info['budget']} {point['budget']:g}",
            info["score"],
            f"{point['pruned']:.2f}",
            f"{point['repaired']:.2f}",
            f"{delta['points']:+.2f} ({delta['low']:+.2f} to {delta['high']:+.2f})",
            "–" if same is None else f"{100 * same:.1f}%",
            f"{point['divergence']:.2g} / {point['repaired_divergence']:.2g}",
        )
        rows.append(_line(cells))
    return rows


def means(measured: Sequence[dict[str, Any]]) -> list[str]:
    """Return each score's difference to the whole model at each budget, in points, averaged over tasks."""
    budgets = [point["budget"] for point in measured[0]["points"]]
    rows = []
    for score in SCORES:
        own = [info for info in measured if info["score"] == score]
        deltas = [mean(info["points"][place]["delta"]["points"] for info in own) for place in range(len(budgets))]
        rows.append(_line((score, *(f"{delta:+.2f}" for delta in deltas))))
    return [*_head(("Judged by", *(f"{budget:g} of the FLOPs" for budget in budgets)), 1), *rows]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(headings: Sequence[str], left: int) -> list[str]:
    return [_line(headings), _line((":--",) * left + ("--:",) * (len(headings) - left))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--task", action="append", required=True)
    parser.add_argument("--flops", default="0.5,0.3", help="falling shares, with commas between")
    parser.add_argument("--examples", type=int, default=2048)
    parser.add_argument("--set", action="append", default=[], metavar="TASK:PATH=VALUE")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--report", type=Path)
    add_json(parser)
    arguments = parser.parse_args()
    measured = []
    print("\n".join(_head(HEADINGS, 3)), flush=True)
    for task in arguments.task:
        for score in SCORES:
            measured.append(pruned(task, score, arguments))
            print("\n".join(lines(measured[-1])), flush=True)
    machine = Machine.here()
    page = [
        "# What pruning judges by\n",
        f"Measured on {machine.cpu}, {', '.join(machine.isa)}, by\n",
        f"```\npython benchmarks/pruning_choices.py {shlex.join(map(display_path, sys.argv[1:]))}\n```\n",
        f"{code_line()}\n",
        f"The teacher is `minilm-l6` fine-tuned on the task, one seed; {arguments.examples:,} training examples tell which heads and "
        "neurons matter, and serve the repair. Scores are on the tuning split, which is held out of train; no reported split was read.\n",
        "## The mean over tasks of the difference to the whole model, repaired, points\n",
        *means(measured),
        "\n## Each task\n",
        *_head(HEADINGS, 3),
        *(line for info in measured for line in lines(info)),
    ]
    if arguments.report:
        write_text(arguments.report, "\n".join(page) + "\n")
    write_json(arguments.json, measured)


if __name__ == "__main__":
    main()
