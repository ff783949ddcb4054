"""The command line on a tiny teacher and task."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TEACHER = """\
name: tiny
title: BERT, 4 layers × 32, random weights
licence: Apache-2.0
random: {layers: 4, hidden: 32, heads: 2, intermediate: 64, vocabulary: 300, max_positions: 32}
finetune: {learning_rate: 1.0e-3, max_steps: 3, batch_size: 8}
"""
TASK = """\
name: tiny-task
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
synthetic: {generator: sentiment, train: 120, dev: 40}
"""


def compress(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("compress")), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
