"""Which modules a command imports, found out in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

HEAVY = {"torch", "transformers", "accelerate", "datasets", "neural_compressor"}
CHILD = """
import json, sys
from compress.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["compress", *words]
    main()
print("\\nimported:", *sys.modules, file=sys.stderr)
"""


def imported(*commands: list[str]) -> set[str]:
    """Return the modules that a process imports when it runs these commands one after the other.

    No GPU is visible, because `--precision auto` would ask torch about it."""
    command = [sys.executable, "-c", CHILD, json.dumps(commands)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("imported:")[2].split())
