"""How long the interactive commands take, start to end, each as a user calls it.

    python benchmarks/startup.py RUN_COMMAND_ARGUMENTS… -- BUNDLE

e.g. `python benchmarks/startup.py distilbert --task sst2 --data-dir ../glue -- ./sst2-int8`. The run must be
finished, so that every stage comes from the store. Prints a Markdown table: median and worst of the rounds,
interleaved, in seconds of wall-clock time.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 7
TARGETS = {"compress --help": 0.4, "compress run, all cached": 3.0, "compress predict": 1.0}


def main() -> None:
    """Measure and print."""
    split = sys.argv.index("--")
    run, bundle = sys.argv[1:split], sys.argv[split + 1]
    program = str(Path(sys.executable).with_name("compress"))
    commands = {
        "compress --help": [program, "--help"],
        "compress run, all cached": [program, "run", *run, "--quiet"],
        "compress predict": [program, "predict", bundle, "a charming and often affecting journey"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS + 1):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - started)
    print("| command | median s | worst s | target s |\n|-|-|-|-|")
    for name, values in seconds.items():
        warm = values[1:]
        print(f"| `{name}` | {statistics.median(warm):.2f} | {max(warm):.2f} | {TARGETS[name]} |")


if __name__ == "__main__":
    main()
