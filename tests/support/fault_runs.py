"""Runs that are killed and resumed, in forks of a process that has imported torch, and compared byte by byte."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compress.store import Store

HERE = Path(__file__)


class Forks:
    """Processes forked from one that has imported what they need: the script `child`, run by the prefix `command`."""

    def __init__(self, folder: Path, child: str, command: Sequence[str] = ()) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[2])}
        self._folder = folder
        self._server = subprocess.Popen(
            [*command, sys.executable, str(HERE.with_name(child)), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def _ask(self, command: Any) -> int:
        assert self._server.stdin is not None
        self._server.stdin.write(f"{json.dumps(command)}\n")
        self._server.stdin.flush()
        return int(self._line())

    def start(self, root: Path, **harm: Any) -> int:
        return self._ask([str(self._folder), str(root), harm])

    def wait(self, process: int) -> int:
        return self._ask(process)

    def run(self, root: Path, **harm: Any) -> int:
        return self.wait(self.start(root, **harm))

    def close(self) -> None:
        self._server.communicate()

    @property
    def process(self) -> int:
        return self._server.pid


def trainer_of(recipe: Path) -> Forks:
    """Return forks that train by the recipe in the folder."""
    return Forks(recipe, "training_child.py")


def lines(root: Path, name: str) -> list[str]:
    path = root.with_name(f"{root.name}.{name}")
    return path.read_text().splitlines() if path.exists() else []


def artefact(folder: Path, info: dict[str, Any]) -> dict[str, Any]:
    """Return all that must be equal between runs: every byte except those that depend on time."""
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    del files["manifest.json"], files["log.jsonl"]
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    steps = [{name: value for name, value in line.items() if name != "seconds"} for line in log]
    return {"files": files, "log": steps, "info": {**info, "tokens_per_second": None, "model_flops_per_second": None}}


def outcome(root: Path) -> dict[str, Any]:
    """Return what the processes that finished in `root` got from the store. There may be several, since one can be killed just as
    it finishes; all must agree."""
    artefacts, *more = (json.loads(done.read_text()) for done in root.parent.glob(f"{root.name}.done-*"))
    assert all(other == artefacts for other in more)
    return {name: artefact(Path(each["path"]), each["info"]) for name, each in artefacts.items()}


def kill_soon(trainer: Forks, root: Path, dice: random.Random) -> int:
    """Start a process and send it SIGKILL shortly after its next step or two, whatever it is doing then."""
    before, after = len(lines(root, "steps")), dice.randrange(1, 3)
    process = trainer.start(root)
    deadline = time.monotonic() + 100
    while len(lines(root, "steps")) < before + after and not list(root.parent.glob(f"{root.name}.done-*")):
        assert time.monotonic() < deadline, lines(root, "errors")
        time.sleep(dice.random() * 0.004)
    os.kill(process, signal.SIGKILL)
    return trainer.wait(process)


def kill_often(trainer: Forks, folder: Path, keys: list[str], *, kills: int, seed: int) -> tuple[list[Path], set[int]]:
    """Start runs, killing each until it finishes, until `kills` processes were killed. Return the runs' roots, and how many of
    the artefacts `keys` existed after each process ended. How many kills one run takes depends on its progress between them."""
    dice, killed, roots, stages = random.Random(seed), 0, list[Path](), set[int]()
    while killed < kills:
        roots.append(folder / f"root-{len(roots)}")
        codes = _kill_until_done(trainer, roots[-1], keys, dice, stages)
        killed += codes.count(-signal.SIGKILL)
    return roots, stages


def _kill_until_done(trainer: Forks, root: Path, keys: list[str], dice: random.Random, stages: set[int]) -> list[int]:
    """Kill the run alternately at a touch of the disk (start, step, save, manifest, rename) and at a random time; return the exit
    codes."""
    codes, store = list[int](), Store(root / ".store")
    while 0 not in codes:
        touch = dice.randrange(3, 60)
        codes.append(kill_soon(trainer, root, dice) if len(codes) % 2 else trainer.run(root, touch=touch))
        assert codes[-1] in (0, -signal.SIGKILL), lines(root, "errors")
        there = [key for key in keys if store.path(key).exists()]
        assert all(store.find(key) for key in there), store.last_problem  # absent or complete
        stages.add(len(there))
    return codes
