"""A candidate's process: our worker, with the interpreter and the variables of the peer's environment."""

from __future__ import annotations

import os
from pathlib import Path

from compress.bench.worker import Worker

CHILD = Path(__file__).with_name("child.py")
_SECONDS = 1800.0  # for one answer: converting a large model on a busy core


def start(python: Path, peer: str, threads: int, *, ours: bool, program: Path = CHILD) -> Worker:
    """The process of one candidate; its `ask` raises CompressError when it refuses, dies or says nothing for long."""
    return Worker([str(python), str(program), peer], _variables(python, threads, ours), _SECONDS)


def _variables(python: Path, threads: int, ours: bool) -> dict[str, str]:
    """Our package for our own candidates alone; the environment's programs first, as when it is activated; threads
    that wait sleep, or they would spin through the next candidate's turn. `CI` turns OpenVINO's telemetry off, in
    convert_model and in NNCF (openvino_telemetry's `disable_in_ci`, which both set): it starts a process for each event,
    which hangs where there is no network."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(CHILD.parents[2]) if ours else "",
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        "HF_HUB_OFFLINE": "1",
        "CI": "true",
        "TOKENIZERS_PARALLELISM": "false",
    }
