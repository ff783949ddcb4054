"""Run a toy search in a separate process: `search_child.py FOLDER TRIALS SECONDS [MOST]`. Each point adds a line to `computed`;
once there are MOST, the next trial hangs."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from compress.search.space import Axis, Point
from compress.search.study import Outcome, Search

AXES = (Axis("recipe", ("a", "b")), Axis("distill.epochs", tuple(range(1, 9))), Axis("quantize.method", ("x", "y")))
STAGES = {"a": {"distill", "quantize"}, "b": {"quantize"}}


def toy_search(folder: Path) -> Search:
    return Search(folder, {"task": "toy"}, AXES, STAGES, objectives=2, seed=3)


def compute(point: Point) -> Outcome:
    epochs = point.get("distill.epochs", 0)
    score, size = 80.0 + epochs + (point["quantize.method"] == "y"), 10.0 + 3 * epochs
    return Outcome((-score, size), {"size": size / 20 - 1}, info={"score": score})


def work_beside(folder: Path, trials: int, seconds: float = 0, most: int = 1_000) -> None:
    def work(number: int, point: Point) -> Outcome:
        computed = folder / "computed"
        if computed.exists() and len(computed.read_text().splitlines()) >= most:
            (folder / f"hangs-{most}").touch()
            time.sleep(600)
        time.sleep(seconds)
        with computed.open("a") as file:
            file.write(json.dumps(point, sort_keys=True) + "\n")
        return compute(point)

    toy_search(folder).run(trials, work)


def wait_to_be_ended(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    time.sleep(600)


if __name__ == "__main__":
    work_beside(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]) if sys.argv[4:] else 1_000)
