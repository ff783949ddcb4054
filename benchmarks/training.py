"""Measure fine-tuning throughput on this machine, fp32 against bf16, interleaved; and the peak memory of the process.

    python benchmarks/training.py --teacher minilm-l6 --task sst2 --data-dir ../glue --steps 30

Padding is not counted. Prints a Markdown table.
"""

import argparse
import resource
import statistics
import tempfile
from pathlib import Path

import torch
from records import add_json, code_line, write_json

from compress.losses.hard_label import HardLabel
from compress.machine import fast_bf16, usable_cores
from compress.models.checkpoints.folders import load_classifier, load_tokenizer, pad_id
from compress.objective import Objective
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.plan.teachers import resolve_teacher
from compress.results import Machine
from compress.spec.stages import Training
from compress.tasks import TaskBatches, resolve_task
from compress.training import StepReport, make_accelerator, train

WARMUP_STEPS = 5
ROUNDS = 3


def tokens_per_second(arguments: argparse.Namespace, precision: str, seed: int) -> float:
    """Return the median over the steps after the warm-up."""
    spec, folder = resolve_task(arguments.task)
    task = TaskSource(spec, folder, arguments.data_dir)
    teacher = resolve_teacher(arguments.teacher)
    if teacher.folder is None:
        raise SystemExit("expected a teacher with a checkpoint")
    model = load_classifier(teacher.folder, kind="classification", labels=task.data.labels, trained=False)
    encoded = task.encoded("train", load_tokenizer(teacher.folder), spec.max_length)
    settings = Training(max_steps=arguments.steps, keep="last")
    rates: list[float] = []

    def record(report: StepReport) -> None:
        rates.append(report.tokens / report.seconds)

    with tempfile.TemporaryDirectory() as work:
        train(
            model,
            Objective([HardLabel()]),
            TaskBatches(encoded, batch_size=settings.batch_size, pad_id=pad_id(teacher.config), seed=seed),
            settings,
            accelerator=make_accelerator(precision),
            teacher=lambda batch, indices: {},
            evaluate=lambda model: 0.0,
            work=Path(work),
            on_step=record,
        )
    return statistics.median(rates[WARMUP_STEPS:])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", default="minilm-l6")
    parser.add_argument("--task", default="sst2")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=usable_cores(), help="default: one per usable core")
    parser.add_argument("--bf16", action="store_true", help="measure bf16 also where the CPU emulates it")
    add_json(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    precisions = ["fp32", *(["bf16"] if fast_bf16() or arguments.bf16 else [])]
    speeds: dict[str, list[float]] = {precision: [] for precision in precisions}
    for round_ in range(ROUNDS):
        for precision in precisions:
            speeds[precision].append(tokens_per_second(arguments, precision, round_))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    write_json(arguments.json, {"tokens_per_second": speeds, "peak_memory_kib": peak})
    print(f"CPU: {Machine.here().cpu}, {', '.join(Machine.here().isa)}; {arguments.threads} threads\n\n{code_line()}\n")
    print("| precision | tokens/s, median of rounds | slowest | fastest |\n|-|-|-|-|")
    for precision, rates in speeds.items():
        print(f"| {precision} | {statistics.median(rates):,.0f} | {min(rates):,.0f} | {max(rates):,.0f} |")
    print(f"\npeak memory of this process: {peak / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
