"""Make int8 bundles from plain text on one GPU within N minutes, resumably: pre-train a teacher, then run every recipe on it.

    python benchmarks/gpu_campaign.py --minutes 60 --teacher bert-small --corpus TEXT --data-dir GLUE \\
        --task sst2 --task mrpc --out campaign --piece-mib 16

1. A few steps of `bert-pretrain` measure the tokens per second; the pre-training then has as many steps as fit into --share of
   the minutes.
2. Each recipe runs on each task with that teacher, cheapest first, none longer than half of the remaining time.
3. Each finished run becomes an int8 bundle; with --piece-mib, files above that size are cut into pieces, with a script that
   joins them.

Latency is not measured: run `compress verify` and `compress bench` with the bundles on the target CPU. campaign.md and
campaign.json record the outcome of each step, and the hardware.

Before it starts it prints what fits into the minutes, the memory that each step takes, and what is unlikely to fit; --dry-run stops there.
The same command resumes after a stop, a kill or a timeout; --minutes then count from the new start. If `--teacher` is a folder or a card
with a checkpoint, its pre-training continues; `--no-pretrain` uses it as it is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from campaign.bundles import make_bundles
from campaign.outlook import outlook
from campaign.page import write_page
from campaign.state import Campaign
from campaign.steps import RECIPES, check, pretrained_teacher, run_recipes

from compress.errors import CompressError, Interrupted
from compress.processes import signals


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, required=True, help="wall-clock time for everything")
    parser.add_argument("--teacher", default="bert-small", help="a card or a checkpoint's folder")
    parser.add_argument("--corpus", action="append", required=True, help="plain text; may be given again")
    parser.add_argument("--data-dir", type=Path, help="folder of GLUE's files, or of the task's")
    parser.add_argument("--task", action="append", required=True, help="a task's name or file; may be given again")
    parser.add_argument("--recipe", action="append", help=f"may be given again; default: {', '.join(RECIPES)}")
    parser.add_argument("--share", type=float, default=0.5, help="of the minutes for pre-training")
    parser.add_argument("--set", action="append", default=[], help="PATH=VALUE for every recipe that has the field")
    parser.add_argument("--no-pretrain", action="store_true", help="take the teacher as it is")
    parser.add_argument("--probe-steps", type=int, default=30, help="of pre-training, to know its speed")
    parser.add_argument("--precision", choices=("fp32", "bf16", "auto"), help="default: the recipes'")
    parser.add_argument("--piece-mib", type=float, help="cut the bundles' larger files into pieces of this size")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry-run", action="store_true", help="print what it will do, and do nothing")
    arguments = parser.parse_args(words)
    if arguments.minutes <= 0 or not 0 < arguments.share < 1:
        parser.error("--minutes is above 0, --share between 0 and 1")
    if arguments.piece_mib is not None and arguments.piece_mib <= 0:
        parser.error("--piece-mib is above 0")
    return arguments


def main() -> int:
    """Return 0 if every step is done; 1 if some failed or did not fit, as listed on the page."""
    arguments = parsed()
    signals.install()  # so that the running step is also told to save its state
    try:
        check(arguments)
        for line in outlook(arguments):
            print(line, file=sys.stdout if arguments.dry_run else sys.stderr, flush=True)
        if arguments.dry_run:
            return 0
        campaign = Campaign(arguments)
        teacher = pretrained_teacher(campaign)
        if teacher is not None:
            run_recipes(campaign, teacher)
            make_bundles(campaign)
    except (CompressError, Interrupted) as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    page = write_page(campaign)
    print(page)
    return 0 if campaign.complete else 1


if __name__ == "__main__":
    sys.exit(main())
