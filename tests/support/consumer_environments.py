"""Environments with other libraries, installed from the registries; a test is skipped, with the reason, if installation fails."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLACE = Path(sys.prefix) / "consumers"
INSTALL_SECONDS = 1800.0


def python_with(*requirements: str) -> Path:
    """Return the Python of an environment that has only these requirements; skip the test if they cannot be installed."""
    folder = PLACE / hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:16]
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        _install([sys.executable, "-m", "venv", str(folder)])
        _install([str(python), "-m", "pip", "install", "-q", *requirements])
        ready.touch()
    return python


def node_with(package: str) -> Path:
    """Return a folder in which Node finds the package, installed without package scripts, as one of them downloads a GPU
    runtime."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    folder = PLACE / hashlib.sha256(package.encode()).hexdigest()[:16]
    if not (folder / "ready").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
        _install([npm, "install", "--ignore-scripts", "--prefix", str(folder), package])
        (folder / "ready").touch()
    return folder


def _install(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if "error" in line.lower()][-1:] or [done.stderr[-300:]]
        pytest.skip(f"{' '.join(command[-2:])}: cannot be installed here: {last[0]}")
