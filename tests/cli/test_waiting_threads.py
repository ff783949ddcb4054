"""Torch's waiting threads sleep, unless the user sets otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = """
import contextlib, ctypes, sys
from compress.cli import main
sys.argv = ["compress", "--version"]
with contextlib.suppress(SystemExit):
    main()
ctypes.CDLL({library!r})
"""


def openmp() -> Path:
    """Return torch's OpenMP library, which reads its settings when loaded and can print them."""
    spec = find_spec("torch")
    assert spec is not None and spec.origin is not None
    libraries = sorted((Path(spec.origin).parent / "lib").glob("libgomp*.so*"))
    if not libraries:
        pytest.skip("this torch brings no libgomp")
    return libraries[0]


@pytest.mark.parametrize(("before", "after"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_the_command_line_lets_them_sleep(before: str | None, after: str) -> None:
    unset = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment = {**unset, "OMP_DISPLAY_ENV": "true", **({"OMP_WAIT_POLICY": before} if before else {})}
    script = SCRIPT.format(library=str(openmp()))
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert f"OMP_WAIT_POLICY = '{after}'" in done.stderr
