"""Recipe int8 on a user's own train and dev files, from a tiny teacher to a shipped bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import compress
from compress.bundle import ship
from compress.results import Result

_TEACHER = """\
name: tiny
title: BERT, 2 layers × 64, random weights
licence: Apache-2.0
random: {{layers: 2, hidden: 64, heads: 4, intermediate: 128, vocabulary: 300, max_positions: {positions}}}
finetune: {{learning_rate: 2.0e-3, epochs: {epochs}, batch_size: 16}}
"""


def write_teacher(folder: Path, *, epochs: int, positions: int = 64) -> None:
    """Write the card tiny.yaml."""
    (folder / "tiny.yaml").write_text(_TEACHER.format(epochs=epochs, positions=positions), encoding="utf-8")


def own_files(folder: Path, suffix: str, **more: Any) -> dict[str, Any]:
    """Return the arguments for `compress.run`."""
    files = {"train": folder / f"train{suffix}", "dev": folder / f"dev{suffix}"}
    return {
        **files, **more, "teacher": str(folder / "tiny.yaml"), "root": folder / "runs", "bench": None, "threads": 1,
    }  # fmt: skip


def finished(options: dict[str, Any]) -> Result:
    (result,) = compress.run("int8", overrides=["quantize.method=static"], **options)
    return result


def shipped(folder: Path, result: Result) -> Path:
    runs = folder / "runs"
    return ship(runs / result.run, folder / "bundle", store=runs / ".store", with_checkpoint=True)
