"""`compress predict` as a command."""

from __future__ import annotations

import subprocess
from pathlib import Path

from recipe_runs import compress


def predict(*arguments: object, lines: str = "") -> subprocess.CompletedProcess[str]:
    return compress("predict", *arguments, cwd=Path.cwd(), lines=lines)
