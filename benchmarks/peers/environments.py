"""A virtual environment per peer, made from its pinned requirements; made once, then found again."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
_LAST_WORDS = 300  # characters of pip's complaint that a report can carry


def environment(name: str, folder: Path) -> Path:
    """The interpreter of `folder`/`name`, with `requirements/<name>.txt` installed in it.

    The first requirement goes in by itself: where it is torch, what depends on it takes the build that is there.
    RuntimeError: pip's last words.
    """
    wanted = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    home = (folder / name).absolute()
    python, done = home / "bin/python", home / "requirements.sha256"
    digest = hashlib.sha256(wanted.encode()).hexdigest()
    if done.is_file() and done.read_text() == digest:
        return python
    _run([sys.executable, "-m", "venv", "--clear", home])
    pins = [line for line in wanted.splitlines() if line and not line.startswith("#")]
    for part in (pins[:1], pins):  # most modules are never imported, so none is compiled before it is
        _run([python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", *part])
    done.write_text(digest)
    return python


def _run(command: list[str | Path]) -> None:
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if "WARNING" not in line]
        raise RuntimeError(" ".join(" ".join(said).split())[-_LAST_WORDS:])
