"""Compare ONNX files on a machine too busy for `compress bench`: in one process, a few runs of each file in turn.

    python benchmarks/in_turns.py int8/model_quantized.onnx relu-int8/model_quantized.onnx --shape 1x32 --shape 1x128

Other load slows both files of a round alike, so a ratio within a round is more reliable than two separate times. The first file is the
baseline; it runs again in a second session, as the control. CPU time, one thread.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from records import add_json, code_line, write_json

from compress.machine import cpu_name, isa
from compress.sessions.opening import open_session

TURN = 0.1  # approximate seconds of CPU time of each file in a round


def milliseconds(session: Any, feed: dict[str, np.ndarray], runs: int) -> float:
    """Return the mean CPU time of `runs` runs."""
    start = time.process_time()
    for _ in range(runs):
        session.run(None, feed)
    return (time.process_time() - start) / runs * 1e3


def rounds_of(files: list[Path], batch: int, length: int, rounds: int) -> np.ndarray:
    """Return CPU milliseconds [round, file] of a batch of random tokens."""
    ids = np.random.default_rng(0).integers(5, 200, (batch, length))  # ids that small vocabularies have, too
    arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    sessions = [open_session(file, threads=1) for file in files]
    feeds = [{each.name: arrays[each.name] for each in session.get_inputs()} for session in sessions]
    first = [milliseconds(session, feed, 2) for session, feed in zip(sessions, feeds, strict=True)]
    runs = [math.ceil(TURN * 1e3 / time) for time in first]
    times = np.zeros((rounds, len(files)))
    for number in range(rounds):
        for place in np.random.default_rng(number).permutation(len(files)):
            times[number, place] = milliseconds(sessions[place], feeds[place], runs[place])
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument(
        "--shape", action="append", help="BATCHxLENGTH; repeat for several; default: 1x32, 1x128, 8x128"
    )
    parser.add_argument("--rounds", type=int, default=40)
    add_json(parser)
    arguments = parser.parse_args()
    files = [*arguments.files, arguments.files[0]]
    names = [str(file) for file in arguments.files] + [f"{arguments.files[0]}, again"]
    print(f"CPU: {cpu_name()}, {', '.join(isa())}; 1 thread; {arguments.rounds} rounds")
    print(f"{code_line()}\n\n| shape | file | CPU ms, median | ratio, median | middle half of ratios |\n|-|-|-:|-:|-|")
    measured: dict[str, dict[str, list[float]]] = {}
    for shape in arguments.shape or ["1x32", "1x128", "8x128"]:
        batch, length = map(int, shape.split("x"))
        times = rounds_of(files, batch, length, arguments.rounds)
        ratios = times / times[:, :1]
        measured[shape] = {name: each.tolist() for name, each in zip(names, times.T, strict=True)}
        for name, each, ratio in zip(names, times.T, ratios.T, strict=True):
            low, middle, high = np.percentile(ratio, [25, 50, 75])
            print(f"| {shape} | {name} | {np.median(each):.3g} | {middle:.3f} | {low:.3f} to {high:.3f} |", flush=True)
    write_json(arguments.json, measured)


if __name__ == "__main__":
    main()
