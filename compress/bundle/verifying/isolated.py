"""Run the checks that open a bundle's graphs in a separate process: a graph that crashes a library only fails its check."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ...errors import CompressError
from ...machine import usable_cores
from ...processes.worker import Worker, environment
from .accuracy import SCORES
from .report import Check

_SECONDS = 600.0  # for the process to start
_SECONDS_OF_A_CHECK = 3600.0  # large models on slow machines take minutes to simulate
_SECONDS_OF_SCORES = 7 * 24 * 3600.0  # for data of any size


def isolated_checks(folder: Path, options: dict[str, Any]) -> list[Check]:
    """Run the checks of `Verification` with these `options`. If the process dies, the last check is a failed one."""
    checks: list[Check] = []
    name, file = "graphs", "bundle.json"
    command = [sys.executable, "-P", "-m", "compress.bundle.verifying.child"]
    with Worker(command, environment(options["threads"] or usable_cores()), _SECONDS) as worker:
        try:
            worker.ask("open", folder=str(folder), **options)
            while (begun := worker.ask("begin")) is not None:
                name, file = begun
                worker.timeout = _SECONDS_OF_SCORES if name.startswith(SCORES) else _SECONDS_OF_A_CHECK
                checks.append(Check.model_validate(worker.ask("make")))
        except CompressError as error:
            checks.append(Check(name=name, passed=False, detail=f"{folder / file}: {error}"))
    return checks
