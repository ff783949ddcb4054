"""Count how much of a training batch is padding, and so the most that batches without padding could gain.

    python benchmarks/padding.py --task sst2 --task mrpc --data-dir ../glue

Batches each task's training texts, of one column or two, by 32 in three ways: ours, of texts of near-equal lengths; in random order, each
batch padded to its longest text; and padded to 128 tokens. Counts tokens, times nothing. Prints a Markdown table.
"""

import argparse
from pathlib import Path

import numpy as np
from records import add_json, code_line, write_json

from compress.models.checkpoints.folders import load_tokenizer
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.plan.teachers import resolve_teacher
from compress.tasks import BucketSampler, resolve_task

BATCH_SIZE, LONGEST = 32, 128


def shares(lengths: np.ndarray) -> dict[str, float]:
    """Return the share of padding in an epoch of batches of texts of these lengths [text]."""
    order = np.random.default_rng(0).permutation(len(lengths))
    ways = {
        "ours": BucketSampler(lengths, BATCH_SIZE, 0).epoch(0),
        "random": [order[at : at + BATCH_SIZE] for at in range(0, len(order), BATCH_SIZE)],
    }
    padded = {way: sum(len(batch) * int(lengths[batch].max()) for batch in batches) for way, batches in ways.items()}
    padded["longest"] = len(lengths) * LONGEST
    return {way: 1 - float(lengths.sum()) / count for way, count in padded.items()}


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", default="minilm-l6", help="whose tokenizer is used")
    parser.add_argument("--task", action="append", required=True)
    parser.add_argument("--data-dir", type=Path)
    add_json(parser)
    arguments = parser.parse_args()
    folder = resolve_teacher(arguments.teacher).folder
    if folder is None:
        raise SystemExit("expected a teacher with a checkpoint")
    measured = {}
    print(f"{code_line()}\n")
    print("| task | texts | tokens of a text | padding in ours | in random order | at 128 tokens | at most gained |")
    print("|-|-:|-:|-:|-:|-:|-:|")
    for task in arguments.task:
        spec, home = resolve_task(task)
        lengths = TaskSource(spec, home, arguments.data_dir).encoded("train", load_tokenizer(folder), LONGEST).lengths
        padding = measured[task] = shares(lengths)
        cells = [f"{padding[way]:.1%}" for way in ("ours", "random", "longest")]
        gain = f"{1 / (1 - padding['ours']):.3f}"
        print(f"| {task} | {len(lengths):,} | {lengths.mean():.1f} | {' | '.join(cells)} | {gain} |", flush=True)
    write_json(arguments.json, measured)


if __name__ == "__main__":
    main()
