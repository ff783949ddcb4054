"""Interrupted commands: what they leave behind, and whether the same command then succeeds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fault_runs import Forks

from compress.bundle import files, read_bundle
from compress.files.atomic import BUILDING, OLD, PART
from compress.results import read_result
from compress.store import Store

KEY = "0" * 32
RUN = "runs/bag-toy-sentiment-0"
HARMS: dict[str, dict[str, Any]] = {
    "run": {"do": "run"},
    "report": {"do": "report"},
    "ship": {"do": "ship"},
    "force": {"do": "force"},
    "force in two steps": {"do": "force", "exchange": False},
}


@dataclass(frozen=True)
class Commands:
    """Forked processes that run commands; for each command its output files and its number of disk touches and writes."""

    forks: Forks
    folder: Path
    expected: dict[str, dict[str, str]]
    touches: dict[str, int]
    writes: dict[str, int]

    def start_from(self, name: str, root: Path) -> None:
        """Make the bundle that `--force` replaces."""
        if HARMS[name]["do"] == "force":
            assert self.forks.run(root, do="old") == 0, self.said(root)

    def give(self, name: str, root: Path, **harm: Any) -> int:
        return self.forks.run(root, **HARMS[name], **harm)

    def said(self, root: Path) -> str:
        return (self.folder / f"{root.name}.errors").read_text()

    def again(self, name: str, root: Path, seen: Path | None = None) -> None:
        """Check that the command, run again, gives the expected files; `ship` instead reports a bundle that is already in place.
        `seen`: the path of `root` as this process sees it."""
        done = name == "ship" and ((seen or root) / "bundle").exists()
        assert self.give(name, root) == (2 if done else 0), self.said(root)
        differs = tree(seen or root).items() ^ self.expected[name].items()
        assert not differs, sorted(differs)


def commands_in(forks: Forks, folder: Path) -> Commands:
    commands = Commands(forks, folder, {}, {}, {})
    for name in HARMS:
        root = folder / f"expected-{name}"
        commands.start_from(name, root)
        assert commands.give(name, root, count=True) == 0, commands.said(root)
        commands.expected[name] = tree(root)
        commands.touches[name], commands.writes[name] = map(int, (folder / f"{root.name}.count").read_text().split())
    return commands


def tree(root: Path) -> dict[str, str]:
    """Return the path of every file and folder with the file's hash, without manifests, which contain times."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(root.rglob("*"))
        if path.name != "manifest.json"
    }


def leftovers(root: Path) -> list[Path]:
    """Return what killed processes left behind; the dot folder of the store itself does not count."""
    return [path for path in root.rglob(".*.*") if path.suffix in (f".{PART}", f".{BUILDING}", f".{OLD}")]


def bundle_in(place: Path) -> str:
    """Return the model of the bundle in `place`, after checking every file against its list."""
    info = read_bundle(place)
    assert files.file_problems(place, info.files) == []
    return info.model


def check_whole(root: Path, expected: dict[str, str]) -> None:
    """Check that everything in `root` that has its final name is complete."""
    for path in (root / "bundle", root / RUN / "result.json", root / "report" / "result.json"):
        if path.name == "bundle" and path.exists():
            assert bundle_in(path) in ("student", "teacher")
        elif path.exists():
            read_result(path)
    store = Store(root / "runs" / ".store")
    if store.path(KEY).exists():
        assert store.find(KEY), store.last_problem
    for folder in (root / RUN, root / "report"):
        for path in folder.glob("[!.]*"):
            name = path.relative_to(root).as_posix()
            assert hashlib.sha256(path.read_bytes()).hexdigest() == expected[name], f"{name} is cut"
