"""Share one `compress search` among the machines of a Ray cluster, through a folder that all of them can access.

    python search_on_ray.py --address auto --workers 8 -- distilbert int8 --task sst2 --max-size-mb 20 --trials 60 -o /shared/runs

Ray starts the workers, and restarts a worker whose machine is lost. The workers share the trials through the search's journal in the
folder, like processes that you start by hand.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def search(words: list[str], folder: str) -> tuple[int, str]:
    """Run one worker to its end; return the exit code of `compress search` and its output."""
    command = [sys.executable, "-m", "compress", "search", *words]
    process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    return process.returncode, process.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", help="of a running cluster, `auto` on one of its machines; default: this machine")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--cores", type=float, default=1, help="that Ray keeps for each worker; give the search as many --threads"
    )
    parser.add_argument(
        "words",
        nargs="+",
        metavar="RECIPE",
        help="and the options of `compress search`, after --; -o is on a disk that all machines share",
    )
    options = parser.parse_args()
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise SystemExit("this needs Ray: pip install -c constraints.txt -e '.[ray]'") from None

    ray.init(address=options.address, include_dashboard=False if options.address is None else None)
    worker = ray.remote(num_cpus=options.cores, max_retries=-1)(search)
    workers = [worker.remote(options.words, str(Path.cwd())) for _ in range(options.workers)]
    outcomes = ray.get(workers)
    code, printed = max(outcomes, key=lambda each: each[0])
    print(printed, end="")
    sys.exit(code)


if __name__ == "__main__":
    main()
