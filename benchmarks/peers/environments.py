"""A virtual environment per peer, created once from its pinned requirements and then reused."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from compress.processes.children import run

REQUIREMENTS = Path(__file__).parent / "requirements"
_SECONDS = 1800.0  # for one command: torch over a slow connection


def environment(name: str, folder: Path) -> Path:
    """Return the interpreter of `folder`/`name`, with `requirements/<name>.txt` installed in it.

    The first requirement is installed alone: if it is torch, packages that depend on it use the installed build. CheckFailed: pip's last
    words, or that it did not end within half an hour.
    """
    wanted = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    home = (folder / name).absolute()
    python, done = home / "bin/python", home / "requirements.sha256"
    digest = hashlib.sha256(wanted.encode()).hexdigest()
    if done.is_file() and done.read_text() == digest:
        return python
    run([sys.executable, "-m", "venv", "--clear", home], _SECONDS)
    pins = [line for line in wanted.splitlines() if line and not line.startswith("#")]
    for part in (pins[:1], pins):  # --no-compile: most modules are never imported
        install = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        run([*install, *part], _SECONDS)
    done.write_text(digest)
    return python
