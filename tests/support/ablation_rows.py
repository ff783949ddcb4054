"""Runs of an ablation's rows, made up without training, and the ablation of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from compress.report.ablation import Ablation, ablation_of
from compress.results import Result

DROPS = {"full": 0.02, "without augment": 0.3, "without hidden_mse": 0.021, "map top": -0.09, "without luck": 0.2}
Rows = dict[str, list[Result]]


def toy_rows(
    fake: Callable[..., Result],
    run_directory: Callable[..., Result],
    tasks: Sequence[str] = ("sst2",),
    seeds: int = 3,
    paper: str = "arXiv:1909.10351",
) -> Rows:
    """Return runs of every row: `without augment` is far worse than `full`, `map top` better, `without hidden_mse` equal."""
    rows: Rows = {}
    for label, drop in DROPS.items():
        for task in tasks:
            for seed in range(seeds):
                plain = fake(seed=seed)
                info = plain.task.model_copy(update={"name": task, "title": task.upper()})
                recipe = {"name": "mine", "paper": paper, "stages": [{"finetune": {}}, {"general": {}}]}
                run = f"{label.replace(' ', '-')}-{task}-seed{seed}"
                changes = {"task": info, "run": run, "recipe": recipe, "models": plain.models[:2]}
                rows.setdefault(label, []).append(run_directory(plain.model_copy(update=changes), drop=drop))
    return rows


def ablated(rows: Rows, tmp_path: Path, title: str = "Mine") -> Ablation:
    return ablation_of(rows, title=title, command="compress ablate tinybert", folders=[tmp_path / "runs"])
