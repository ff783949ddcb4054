"""Measure whether pre-training transfers: a teacher pre-trained on plain text against the same one with random weights, on GLUE tasks.

    python benchmarks/transfer.py --teacher bert-mini-256 --corpus TEXT --data-dir GLUE --set pretrain.epochs=3 --out runs

Pre-trains once by `bert-pretrain` with --set, then fine-tunes both the same way, every task with every seed, and scores the reported split
through ONNX Runtime. Differences have 95% intervals over examples and seeds. The same command resumes; with --task several processes can
share the tasks of one --out. Prints Markdown. Once all is done, the same command with --json writes the raw figures from --out and, beside
them as .npz, each model's answer for each example.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from records import add_json, code_line, write_json

from compress.bundle import copy_checkpoint
from compress.cli.display import Display
from compress.machine import usable_cores
from compress.pipeline import Request, build_stage, run_all
from compress.report.grouping.predictions import load_answers, write_answers
from compress.report.grouping.recorded_scores import Scored, metric_of
from compress.results import PREDICTIONS, Machine, Result
from compress.spec.recipe import Recipe
from compress.stats.significance import paired_bootstrap_seeds

TASKS = ("rte", "mrpc", "stsb", "cola", "sst2")
# Fixed before any score was seen. The learning rate is the largest that Turc et al. 2019 (arXiv:1908.08962) search for models
# of this size, since random weights need it.
FINETUNE = {
    "learning_rate": 3e-4,
    "epochs": 4,
    "batch_size": 32,
    "per_task": {"sst2": {"epochs": 1, "evaluate_every": 0.5}},
}
RECIPE = Recipe.model_validate(
    {"name": "finetune-alone", "title": "Fine-tuning alone", "stages": [{"finetune": FINETUNE}, "export"]}
)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", default="bert-mini-256", help="a card with random weights")
    parser.add_argument("--corpus", action="append", required=True)
    parser.add_argument("--data-dir", type=Path, help="default: from the hub")
    parser.add_argument("--task", action="append", help=f"default: {' '.join(TASKS)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], help="PATH=VALUE for bert-pretrain")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    add_json(parser)
    return parser.parse_args()


def pretrained(arguments: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """Return a folder with the checkpoint, and the info of its stage."""
    request = Request(
        ("bert-pretrain",),
        (arguments.task[0],),
        teacher=arguments.teacher,
        corpus=tuple(arguments.corpus),
        data_dir=arguments.data_dir,
        root=arguments.out,
        precision=arguments.precision,
        overrides=tuple(arguments.set),
        bench=None,
    )
    with Display() as display:
        artifact = build_stage(request, "pretrained", display)
    folder = arguments.out / f"{arguments.teacher}-{artifact.path.name[:6]}"
    if not folder.exists():
        copy_checkpoint(artifact.path, folder)
    return folder, artifact.info


def finetuned(arguments: argparse.Namespace, task: str, teacher: str) -> list[Result]:
    """Run the fine-tuning once per seed."""
    request = Request(
        (RECIPE,),
        (task,),
        teacher=teacher,
        seeds=tuple(range(arguments.seeds)),
        data_dir=arguments.data_dir,
        root=arguments.out,
        precision=arguments.precision,
        bench=None,
    )
    with Display() as display:
        return run_all(request, display)


def answers(arguments: argparse.Namespace, run: Result) -> tuple[Any, Any, Any]:
    """Return (metric, answers, gold) of the fine-tuned teacher on the reported split."""
    (model,), file = run.models, arguments.out / run.run / PREDICTIONS
    (output,), gold = load_answers(file, run, [model.predictions])
    return metric_of([Scored(run, model, output, gold, file)]), output, gold


def compared(arguments: argparse.Namespace, arms: list[list[Result]]) -> dict[str, Any]:
    """Return both arms of a task, and their difference."""
    read = [[answers(arguments, run) for run in runs] for runs in arms]
    metric, _, gold = read[0][0]
    pairs = [(base[1], other[1]) for base, other in zip(*read, strict=True)]
    points, low, high = paired_bootstrap_seeds(metric, pairs, gold)
    info = arms[0][0].task.model_dump(mode="json")
    difference = {"points": points, "low": low, "high": high}
    named = zip(("random", "pretrained"), arms, strict=True)
    return {"task": info, "difference": difference} | {name: [recorded(run) for run in runs] for name, runs in named}


def recorded(run: Result) -> dict[str, Any]:
    (model,), document = run.models, run.model_dump(mode="json", include={"run", "seed", "code", "origin", "stages"})
    return document | {"scores": model.scores, "headline": model.headline}


def mean(runs: list[dict[str, Any]]) -> float:
    return fmean(run["headline"] for run in runs)


def line(row: dict[str, Any]) -> str:
    cells = [row["task"]["title"]]
    for runs in (row["random"], row["pretrained"]):
        scores = ", ".join(f"{run['headline']:.2f}" for run in runs)
        cells.append(f"{mean(runs):.2f} ({scores})")
    difference = row["difference"]
    cells.append(f"{difference['points']:+.2f} ({difference['low']:+.2f} to {difference['high']:+.2f})")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    arguments = parsed()
    arguments.task = arguments.task or list(TASKS)
    folder, info = pretrained(arguments)
    arms = [
        [finetuned(arguments, task, teacher) for teacher in (arguments.teacher, str(folder))] for task in arguments.task
    ]
    rows = [compared(arguments, both) for both in arms]
    write_json(arguments.json, {"pretraining": info, "tasks": rows})
    if arguments.json:
        runs = [run for both in arms for arm in both for run in arm]
        write_answers(runs, [arguments.out], arguments.json.with_suffix(".npz"))
    machine = Machine.here()
    held, rate = info["held_out"], info["tokens_per_second"]
    print(f"    python benchmarks/transfer.py {shlex.join(sys.argv[1:])}\n")
    print(f"CPU: {machine.cpu}, {', '.join(machine.isa)}; {usable_cores()} threads\n\n{code_line()}\n")
    print(
        f"Pre-training: {info['steps']:,} steps, {info['sequences']:,} sequences of {info['sequence_length']} tokens a pass, "
        f"{f'{rate:,.0f} tokens a second ' if rate else ''}in {info['precision']}; perplexity of held-out text "
        f"{held['perplexity']:.1f}\n"
    )
    print("| task | random weights, mean (seeds) | pre-trained, mean (seeds) | difference, points, 95% interval |")
    print("|-|-|-|-|")
    print("\n".join(map(line, rows)))
    better = sum(mean(row["pretrained"]) > mean(row["random"]) for row in rows)
    print(f"\nPre-training has the better mean on {better} of {len(rows)} tasks.")


if __name__ == "__main__":
    main()
