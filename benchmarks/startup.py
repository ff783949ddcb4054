"""Measure how long the interactive commands take from start to end, called as a user does.

    python benchmarks/startup.py RUN_COMMAND_ARGUMENTS… -- BUNDLE [--pair TEXT] [--json FILE]

e.g. `python benchmarks/startup.py distilbert --task sst2 --data-dir ../glue -- ./sst2-int8`. The run must be
finished, so that every stage comes from the store. Rounds are interleaved. Prints a Markdown table: median and worst of the
rounds, in seconds of wall-clock time.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from records import add_json, code_line, write_json

from compress.processes.children import run

ROUNDS = 7
SECONDS = 600.0  # for one command; far more than any takes
TARGETS = {"compress --help": 0.4, "compress run, all cached": 3.0, "compress predict": 1.0}


def main() -> None:
    """Measure and print."""
    split = sys.argv.index("--")
    arguments = sys.argv[1:split]
    parser = argparse.ArgumentParser(usage="startup.py RUN_COMMAND_ARGUMENTS… -- BUNDLE [--pair TEXT] [--json FILE]")
    parser.add_argument("bundle")
    parser.add_argument("--pair", help="the second text, for a bundle of pairs")
    add_json(parser)
    options = parser.parse_args(sys.argv[split + 1 :])
    program = str(Path(sys.executable).with_name("compress"))
    commands = {
        "compress --help": [program, "--help"],
        "compress run, all cached": [program, "run", *arguments, "--quiet"],
        "compress predict": [
            *(program, "predict", options.bundle, "a charming and often affecting journey"),
            *(("--pair", options.pair) if options.pair else ()),
        ],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS + 1):
        for name, command in commands.items():
            started = time.perf_counter()
            run(command, SECONDS)
            seconds[name].append(time.perf_counter() - started)
    write_json(options.json, {name: values[1:] for name, values in seconds.items()})
    print(f"{code_line()}\n")
    print("| command | median s | worst s | target s |\n|-|-|-|-|")
    for name, values in seconds.items():
        warm = values[1:]
        print(f"| `{name}` | {statistics.median(warm):.2f} | {max(warm):.2f} | {TARGETS[name]} |")


if __name__ == "__main__":
    main()
