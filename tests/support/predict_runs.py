"""`compress predict` as a command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from recipe_runs import compress


def predict(*arguments: object, lines: str = "") -> subprocess.CompletedProcess[str]:
    return compress("predict", *arguments, cwd=Path.cwd(), lines=lines)


def refusal(folder: Path, place: Path, row: object, *words: str) -> str:
    """Return the one line on stderr with which a .jsonl file of this row, in the folder `place`, is refused."""
    (place / "in.jsonl").write_text(json.dumps(row))
    done = predict(folder, "-i", place / "in.jsonl", "-o", place / "out.jsonl", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    return done.stderr
