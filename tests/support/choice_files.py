"""Questions with endings to choose among, and the task on their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compress.spec.task import Files, TaskSpec
from compress.tasks import load_reported
from compress.tasks.data import Split

Row = dict[str, Any]


def rows_of(count: int, name: str = "train") -> list[Row]:
    """Return rows with two, three and four endings in turn."""
    return [
        {
            "context": f"{name} context {n}",
            "endings": [f"ending {n} {place}" for place in range(2 + n % 3)],
            "label": n % 2,
        }
        for n in range(count)
    ]


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def spec_of(**fields: Any) -> TaskSpec:
    usual = {
        "name": "swag",
        "kind": "choice",
        "text": ["context", "endings"],
        "label": "label",
        "metrics": ["accuracy"],
    }
    return TaskSpec.model_validate(usual | {"files": Files(train="train.jsonl", dev="dev.jsonl")} | fields)


def loaded(folder: Path, rows: list[Row], **fields: Any) -> Split:
    for name in ("train", "dev"):
        write(folder / f"{name}.jsonl", rows)
    return load_reported(spec_of(**fields), folder, None).splits["dev"]
