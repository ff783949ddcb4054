"""Commands that come to harm: what they leave, and what the same command makes of it afterwards."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fault_runs import Forks

from compress.atomic import BUILDING, OLD, PART
from compress.bundle import files, read_bundle
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
    """Processes that give commands, and for each what it makes, its touches of the disk and its writes."""

    forks: Forks
    folder: Path
    expected: dict[str, dict[str, str]]
    touches: dict[str, int]
    writes: dict[str, int]

    def start_from(self, name: str, root: Path) -> None:
        """The bundle that `--force` replaces."""
        if HARMS[name]["do"] == "force":
            assert self.forks.run(root, do="old") == 0, self.said(root)

    def give(self, name: str, root: Path, **harm: Any) -> int:
        return self.forks.run(root, **HARMS[name], **harm)

    def said(self, root: Path) -> str:
        return (self.folder / f"{root.name}.errors").read_text()

    def again(self, name: str, root: Path, seen: Path | None = None) -> None:
        """The same command comes to the same end. A bundle that had reached its place is there, and `ship` says so. `seen`:
        where `root` is for us."""
        done = name == "ship" and ((seen or root) / "bundle").exists()
        assert self.give(name, root) == (2 if done else 0), self.said(root)
        differs = tree(seen or root).items() ^ self.expected[name].items()
        assert not differs, sorted(differs)


def commands_in(forks: Forks, folder: Path) -> Commands:
    found = Commands(forks, folder, {}, {}, {})
    for name in HARMS:
        root = folder / f"expected-{name}"
        found.start_from(name, root)
        assert found.give(name, root, count=True) == 0, found.said(root)
        found.expected[name] = tree(root)
        found.touches[name], found.writes[name] = map(int, (folder / f"{root.name}.count").read_text().split())
    return found


def tree(root: Path) -> dict[str, str]:
    """Every file and folder, with the file's hash; but for manifests, which tell times."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(root.rglob("*"))
        if path.name != "manifest.json"
    }


def leftovers(root: Path) -> list[Path]:
    """Of killed processes; the store's own folder has one dot."""
    return [path for path in root.rglob(".*.*") if path.suffix in (f".{PART}", f".{BUILDING}", f".{OLD}")]


def bundle_in(place: Path) -> str:
    """Which model's bundle there is, every byte as listed."""
    info = read_bundle(place)
    assert files.problems(place, info.files) == []
    return info.model


def check_whole(root: Path, expected: dict[str, str]) -> None:
    """What is in `root` under its own name is whole."""
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
