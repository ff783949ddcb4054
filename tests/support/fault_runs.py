"""Runs that are killed: started as forks of a process that has torch, picked up again, compared byte by byte."""

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
    """Processes forked from one that has imported what they need: the script `child`, started by `command`."""

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
    """Its processes train by the recipe in the folder."""
    return Forks(recipe, "training_child.py")


def lines(root: Path, name: str) -> list[str]:
    path = root.with_name(f"{root.name}.{name}")
    return path.read_text().splitlines() if path.exists() else []


def artefact(folder: Path, info: dict[str, Any]) -> dict[str, Any]:
    """All that must be equal between runs: every byte but those that tell times."""
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    del files["manifest.json"], files["log.jsonl"]
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    steps = [{name: value for name, value in line.items() if name != "seconds"} for line in log]
    return {"files": files, "log": steps, "info": {**info, "tokens_per_second": None, "model_flops_per_second": None}}


def outcome(root: Path) -> dict[str, Any]:
    """What the processes that came to the end in `root` got from the store, one of which may have been killed just then."""
    found, *more = (json.loads(done.read_text()) for done in root.parent.glob(f"{root.name}.done-*"))
    assert all(other == found for other in more)
    return {name: artefact(Path(each["path"]), each["info"]) for name, each in found.items()}


def kill_soon(trainer: Forks, root: Path, dice: random.Random) -> int:
    """Start, and kill from outside a moment after the next step or two, whatever it is doing then."""
    before, after = len(lines(root, "steps")), dice.randrange(1, 3)
    process = trainer.start(root)
    deadline = time.monotonic() + 100
    while len(lines(root, "steps")) < before + after and not list(root.parent.glob(f"{root.name}.done-*")):
        assert time.monotonic() < deadline, lines(root, "errors")
        time.sleep(dice.random() * 0.004)
    os.kill(process, signal.SIGKILL)
    return trainer.wait(process)


def kill_often(trainer: Forks, folder: Path, keys: list[str], *, kills: int, seed: int) -> tuple[list[Path], set[int]]:
    """Run after run, each killed until it is done, until `kills` have been: their roots, and how many of the artefacts `keys`
    were there after each kill. How many kills one run takes depends on how far it came between them."""
    dice, killed, roots, stages = random.Random(seed), 0, list[Path](), set[int]()
    while killed < kills:
        roots.append(folder / f"root-{len(roots)}")
        codes = _kill_until_done(trainer, roots[-1], keys, dice, stages)
        killed += codes.count(-signal.SIGKILL)
    return roots, stages


def _kill_until_done(trainer: Forks, root: Path, keys: list[str], dice: random.Random, stages: set[int]) -> list[int]:
    """By turns at a touch of the disk (start, step, save, manifest, rename) and at a moment of the clock: the exit codes."""
    codes, store = list[int](), Store(root / ".store")
    while 0 not in codes:
        touch = dice.randrange(3, 60)
        codes.append(kill_soon(trainer, root, dice) if len(codes) % 2 else trainer.run(root, touch=touch))
        assert codes[-1] in (0, -signal.SIGKILL), lines(root, "errors")
        there = [key for key in keys if store.path(key).exists()]
        assert all(store.find(key) for key in there), store.last_problem  # absent, or whole
        stages.add(len(there))
    return codes
