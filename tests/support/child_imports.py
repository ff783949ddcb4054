"""What commands import, told by a process of their own."""

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
    """What is imported by a process that gives these commands, one after the other.

    It sees no GPU: there `--precision auto` asks torch what the GPU computes."""
    given = [sys.executable, "-c", CHILD, json.dumps(commands)]
    done = subprocess.run(
        given, capture_output=True, text=True, timeout=120, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("imported:")[2].split())
