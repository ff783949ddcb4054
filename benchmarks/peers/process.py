"""A candidate's process: our worker, with the interpreter and the environment variables of the peer's environment."""

from __future__ import annotations

import os
from pathlib import Path

from compress.processes.worker import Worker

CHILD = Path(__file__).with_name("child.py")
CONVERT_SECONDS = 1800.0  # for one conversion of a large model on a busy core
ANSWER_SECONDS = 1200.0  # for one answer of a model: the first includes torch.compile's compilation


def start(
    python: Path, peer: str, threads: int, *, ours: bool, program: Path = CHILD, seconds: float = CONVERT_SECONDS
) -> Worker:
    """Start the process of one candidate. Its `ask` raises CompressError if it refuses, dies, or has not answered in `seconds`; in the last
    case it is killed with all its children."""
    return Worker([str(python), str(program), peer], _variables(python, threads, ours), seconds)


def _variables(python: Path, threads: int, ours: bool) -> dict[str, str]:
    """Return the environment variables: our package only for our candidates; the environment's programs first, as when activated; waiting
    threads sleep instead of spinning through the next candidate's turn.

    `CI` turns OpenVINO's telemetry off, in convert_model and in NNCF (openvino_telemetry's `disable_in_ci`, which both set): it starts a
    process for each event, which hangs without a network. It turns Olive's off too; the other two are the switches of Olive and
    huggingface_hub.
    """
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(CHILD.parents[2]) if ours else "",
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        "HF_HUB_OFFLINE": "1",
        "CI": "true",
        "OLIVE_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
