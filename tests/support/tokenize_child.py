"""Run as a child process by test_corpus_faults: tokenizes, is killed at many points, and is then run to the end."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from corpus_toys import bert_tokenizer

from compress.corpus import corpus_sources, tokenize_corpus, tokenizing

tokenizing.BLOCK_CHARACTERS, tokenizing.SHARD_TOKENS = 2000, 1500


def kill_at(point: int, root: Path) -> None:
    """SIGKILL this process just before its `point`-th touch of anything below `root`."""
    left = [point]

    def touched(*_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple) -> None:
        inside = event in ("open", "os.mkdir", "os.rename", "os.link", "os.remove")
        if inside and str(arguments[0]).startswith(str(root)):
            touched()

    sys.addaudithook(watch)
    fsync = os.fsync
    os.fsync = lambda descriptor: (touched(), fsync(descriptor))[1]


def tokenize(text: Path, root: Path, threads: int) -> tuple[dict[str, str], int]:
    """Return the files made, in hexadecimal, and the number of tokens that existed at the start."""
    seen: list[int] = []
    tokenize_corpus(
        corpus_sources([str(text)]),
        bert_tokenizer(),
        root / "out",
        root / "work",
        max_tokens=None,
        threads=threads,
        on_progress=seen.append,
    )
    return {path.name: path.read_bytes().hex() for path in sorted((root / "out").iterdir())}, seen[0]


def killed_everywhere(text: Path, base: Path) -> dict[str, int]:
    """Kill a run at every touch of the disk, each in a fresh folder, finish it with a second run, and return counts."""
    states = {"kills": 0, "resumed": 0, "different": 0}
    reference, _ = tokenize_in_a_child(text, base / "whole")
    while True:
        root = base / str(states["kills"])
        child = os.fork()
        if child == 0:
            kill_at(states["kills"], root)
            tokenize(text, root, 1 + states["kills"] % 2)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return states
        assert os.WTERMSIG(status) == signal.SIGKILL
        states["kills"] += 1
        files, resumed = tokenize_in_a_child(text, root)
        states["resumed"] += resumed > 0
        states["different"] += files != reference


def tokenize_in_a_child(text: Path, root: Path) -> tuple[dict[str, str], int]:
    """Run `tokenize` in a fork, because the process that forks must not start threads."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as out:
            json.dump(tokenize(text, root, 2), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = json.load(pipe)
    os.waitpid(child, 0)
    return answer


if __name__ == "__main__":
    print(json.dumps(killed_everywhere(Path(sys.argv[1]), Path(sys.argv[2]))))
