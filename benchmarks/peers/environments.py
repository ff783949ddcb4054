"""A virtual environment per peer, made from its pinned requirements; made once, then found again."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from compress.processes.children import run

REQUIREMENTS = Path(__file__).parent / "requirements"
_SECONDS = 1800.0  # for one command: torch over a slow line


def environment(name: str, folder: Path) -> Path:
    """The interpreter of `folder`/`name`, with `requirements/<name>.txt` installed in it.

    The first requirement goes in by itself: where it is torch, what depends on it takes the build that is there.
    CheckFailed: pip's last words, or that it had not ended in half an hour.
    """
    wanted = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    home = (folder / name).absolute()
    python, done = home / "bin/python", home / "requirements.sha256"
    digest = hashlib.sha256(wanted.encode()).hexdigest()
    if done.is_file() and done.read_text() == digest:
        return python
    run([sys.executable, "-m", "venv", "--clear", home], _SECONDS)
    pins = [line for line in wanted.splitlines() if line and not line.startswith("#")]
    for part in (pins[:1], pins):  # most modules are never imported, so none is compiled before it is
        install = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        run([*install, *part], _SECONDS)
    done.write_text(digest)
    return python
