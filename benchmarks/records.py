"""What every benchmark records: the code and the machine, in its Markdown and, with --json, in a file of raw figures."""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compress.files.atomic import write_text
from compress.files.paths import display_path, with_display_paths
from compress.machine import versions
from compress.provenance import running_code
from compress.results import Machine


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option `--json FILE`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the raw figures")


def code_line() -> str:
    """Return the line for the Markdown that names the code."""
    return f"Code: {running_code()}"


def write_json(path: Path | None, measured: Any) -> None:
    """Write `measured`, with the command, the code and the machine, to `path`; do nothing if `path` is None."""
    if path is None:
        return
    script = Path(sys.argv[0])
    document = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": f"python benchmarks/{shlex.join([script.name, *map(display_path, sys.argv[1:])])}",
        "script": {"name": script.name, "sha256": hashlib.sha256(script.read_bytes()).hexdigest()},
        "code": running_code().model_dump(mode="json"),
        "machine": Machine.here().model_dump(mode="json"),
        "versions": versions(),
        "measured": with_display_paths(measured),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(document, indent=1, default=str) + "\n")
