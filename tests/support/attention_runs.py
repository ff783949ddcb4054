"""A finished run whose fp32 models are tiny random checkpoints that can run, and a parser of its attention page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from bundle_making import make_run
from tokenizers import Tokenizer

from compress.store import Store

LENGTH = 16  # tokens


def attention_run(root: Path, checkpoints: dict[str, Path], tokenizer: Tokenizer) -> Path:
    """Return the run's folder; its store is `root / "store"`. `checkpoints`: the teacher's and the student's."""
    run = make_run(root)
    store, entries = Store(run.store), json.loads((run.folder / "models.json").read_text())
    for number, (role, folder) in enumerate(checkpoints.items()):

        def make(out: Path, work: Path, folder: Path = folder) -> dict[str, Any]:
            shutil.copytree(folder, out, dirs_exist_ok=True)
            (out / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
            return {}

        key = str(number) * 32
        store.build(key, make, describe={})
        entries[f"{role}-fp32"]["checkpoint"] = key
    (run.folder / "models.json").write_text(json.dumps(entries))
    change(run.folder, _adapt)
    return run.folder


def _adapt(result: dict[str, Any]) -> None:
    """Set the maximum length and the labels to those of the tiny checkpoints."""
    result["settings"]["max_length"] = LENGTH
    result["task"]["labels"] = ["bad", "good", "neither"]


def change(run: Path, how: Any) -> None:
    """Apply `how` to the run's result file in place."""
    path = run / "result.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    how(result)
    path.write_text(json.dumps(result), encoding="utf-8")


def page_maps(page: str) -> dict[str, Any]:
    """Return the data of an attention page, its weights decoded independently: for each role a list of [head, query, key]."""
    (text,) = re.findall(r'<script type="application/json" id="maps">(.*?)</script>', page, re.DOTALL)
    maps = json.loads(text)
    for role in ("teacher", "student"):
        model, length = maps[role], len(maps[role]["tokens"])
        layers = []
        for heads, letters in zip(model["heads"], model["weights"], strict=True):
            digits = np.array([maps["digits"].index(letter) for letter in letters], int).reshape(-1, 2)
            steps = (digits @ [64, 1]) / maps["steps"]
            layers.append(steps.reshape(heads, length, length))
        model["weights"] = layers
    return maps
