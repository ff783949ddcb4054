"""Run as a child process by test_store_faults: builds artefacts, and is killed or fails on purpose."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from disk_faults import kill_at, limit_files

from compress.errors import CompressError
from compress.store import Store

KEY = "0" * 32
CONTENT = b"weights" * 20_000


def make(out: Path, work: Path) -> dict:
    checkpoint = work / "checkpoint"
    checkpoint.write_bytes(b"step 7")
    (out / "sub").mkdir()
    (out / "model.bin").write_bytes(CONTENT)
    (out / "sub" / "config.json").write_bytes(b"{}")
    return {"steps": 3}


def whole(root: Path) -> bool:
    """Return whether the artefact is absent, or present and correct in every byte."""
    if not Store(root).path(KEY).exists():
        return True
    artifact = Store(root).find(KEY)
    return artifact is not None and (artifact.path / "model.bin").read_bytes() == CONTENT


def killed_everywhere(base: Path, damaged: bool, step: int) -> dict:
    """Kill a build at touch 0 of the disk, at touch `step`, …, each in a fresh store, until one finishes; return counts of what
    followed."""
    states = {"kills": 0, "halves": 0, "found_after_kill": 0, "unrepaired": 0, "leftovers": 0}
    while True:
        root = base / str(states["kills"])
        if damaged:
            (Store(root).build(KEY, make, describe={}).path / "model.bin").write_bytes(b"spoiled")
        child = os.fork()
        if child == 0:
            kill_at(states["kills"] * step, root)
            Store(root).build(KEY, make, describe={})
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return states
        assert os.WTERMSIG(status) == signal.SIGKILL
        states["kills"] += 1
        artifact = Store(root).find(KEY)
        states["found_after_kill"] += artifact is not None
        states["halves"] += not (damaged or whole(root))
        Store(root).build(KEY, make, describe={})
        states["unrepaired"] += not (whole(root) and Store(root).find(KEY))
        Store(root).build("1" * 32, make, describe={})  # the next build cleans up
        states["leftovers"] += any(path.is_file() for path in (root / ".building").rglob("*"))


def shared(root: Path, signals: Path, dies: bool) -> dict:
    """Build together with another process: the first one builds, and finishes only once the other waits."""

    def make_slowly(out: Path, work: Path) -> dict:
        with (signals / "made").open("a") as count:
            count.write("x")
        first = not (signals / "started").exists()
        (signals / "started").touch()
        deadline = time.monotonic() + 60
        while first and not (signals / "waiting").exists():
            assert time.monotonic() < deadline, "nobody waits"
            time.sleep(0.01)
        if first and dies:
            (out / "half").write_bytes(b"x")
            os.kill(os.getpid(), signal.SIGKILL)
        return make(out, work)

    store = Store(root, lambda line: print(line, file=(signals / "waiting").open("w"), end="", flush=True))
    artifact = store.build(KEY, make_slowly, describe={"label": "the teacher"})
    return {
        "path": str(artifact.path),
        "info": artifact.info,
        "files": sorted(p.name for p in artifact.path.rglob("*")),
    }


def failing(root: Path, how: str) -> dict:
    if how == "limit":
        limit_files(50_000, dies=False)
    if how == "user" and os.geteuid() == 0:
        os.seteuid(65534)

    def make_badly(out: Path, work: Path) -> dict:
        if how == "full":
            Path("/dev/full").write_bytes(b"x")
        if how == "told":
            raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")
        return make(out, work)

    try:
        Store(root).build(KEY, make_badly, describe={})
    except CompressError as error:
        return {"message": str(error), "code": error.exit_code}
    return {"message": None}


if __name__ == "__main__":
    action, folder, *rest = sys.argv[1:]
    if action == "kill":
        outcome = killed_everywhere(Path(folder), rest[0] == "damaged", int(rest[1]))
    elif action == "shared":
        outcome = shared(Path(folder), Path(rest[0]), rest[1:] == ["dies"])
    else:
        outcome = failing(Path(folder), rest[0])
    print(json.dumps(outcome))
