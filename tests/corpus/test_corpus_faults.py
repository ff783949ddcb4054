"""Tokenization under real kills: whatever the moment, the same call resumes and writes the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from corpus_toys import text, write_text

CHILD = Path(__file__).parents[1] / "support" / "tokenize_child.py"
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_kill_at_any_touch_of_the_disk_changes_no_byte_and_finished_shards_are_kept(tmp_path: Path):
    source = write_text(tmp_path / "a.txt", text(250))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(CHILD), str(source), str(tmp_path / "runs")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout)
    assert states["kills"] > 20
    assert states["resumed"] > states["kills"] // 2
    assert states["different"] == 0
