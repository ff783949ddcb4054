"""Distillation by `compress`: a recipe of one stage for each case, and one call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import AutoModelForSequenceClassification

import compress

ENVIRONMENT = ""
PACKAGES = ("torch", "transformers")
FILES = ("distil_ours.py", "distil_logits.yaml", "distil_layers.yaml")


def distil(case: str, pad: str, job: dict[str, Any]) -> Any:
    compress.run(
        str(Path(__file__).with_name(f"distil_{case}.yaml")),
        teacher=job["teacher"],
        train=job["train"],
        dev=job["dev"],
        tuning=job["held_out"],
        seeds=[job["seed"]],
        precision="fp32",
        threads=job["threads"],
        bench=None,
        root=job["out"],
        overrides=[f"distill.epochs={job['epochs']}", f"distill.evaluate_every={job['epochs']}"],
        listener=job["listener"],
    )
    return student(job)


def student(job: dict[str, Any]) -> Any:
    configs = Path(job["out"]).glob(".store/*/config.json")
    config = next(path for path in configs if json.loads(path.read_text())["num_hidden_layers"] == 3)
    return AutoModelForSequenceClassification.from_pretrained(config.parent)
