"""Alter the records of a toy run: another machine, another score, other predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from compress.results import PER_EXAMPLE, read_result


def elsewhere(document: dict[str, Any]) -> None:
    document["machine"]["cpu"] = "Another CPU"


def with_score(document: dict[str, Any], points: float) -> None:
    """Set the recorded score of the quantized model."""
    model = document["models"][-1]
    model["scores"]["dev"]["accuracy"] = model["headline"] = points


def with_wrong(report: Path, count: int) -> float:
    """Make `count` more of the recorded predictions wrong, and return their score."""
    run = read_result(report)
    with np.load(report / PER_EXAMPLE) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    index = json.loads(str(kept["index"]))
    gold, answers = (
        kept["tiny-task/dev"][0],
        kept["tiny-task/dev"][index["tiny-task/dev"][run.run][run.final.predictions]],
    )
    others = answers.copy()
    others[np.flatnonzero(answers == gold)[:count]] ^= 1
    index["tiny-task/dev"][run.run][run.final.predictions] = len(kept["tiny-task/dev"])
    kept |= {"index": np.array(json.dumps(index)), "tiny-task/dev": np.vstack([kept["tiny-task/dev"], others])}
    np.savez_compressed(report / PER_EXAMPLE, allow_pickle=False, **kept)
    return 100 * float((others == gold).mean())
