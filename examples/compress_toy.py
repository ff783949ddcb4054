"""Compress the embedded toy teacher by two recipes, ship the smaller model and predict with it."""

from __future__ import annotations

import argparse
from typing import Any

import scripts

import compress
from compress.bundle import ship
from compress.runtime import Classifier

TEXTS = ["the story was superb .", "the music was truly awful ."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="toy-sentiment", help="name of a task, or a task file")
    parser.add_argument("--out", type=scripts.folder, default="toy", help="folder for the runs and the bundle")
    parser.add_argument("--steps", type=scripts.count, help="optimizer steps of each training; default: the recipes'")
    options = parser.parse_args()

    settings = [] if options.steps is None else [f"finetune.max_steps={options.steps}"]
    distilled = [] if options.steps is None else [f"distill.max_steps={options.steps}"]
    common: dict[str, Any] = {
        "tasks": options.task,
        "teacher": "bert-mini",
        "root": options.out / "runs",
        "progress": True,
    }
    common["bench"] = None  # without latency, which takes longer than all the rest here
    (int8,) = compress.run("int8", overrides=settings, **common)
    (student,) = compress.run("distilbert", overrides=settings + distilled, **common)  # the same teacher, trained once

    for result in (int8, student):
        model = result.final
        print(f"{result.recipe['name']}: {model.headline:.2f} points, {model.file_bytes / 1e6:.2f} MB, {model.delta}")

    runs = options.out / "runs"
    bundle = ship(runs / student.run, options.out / "bundle", store=runs / ".store", force=True)
    for text, answer in zip(TEXTS, Classifier(bundle).predict(TEXTS), strict=True):
        print(f"{answer.label} {answer.score:.3f}  {text}")


if __name__ == "__main__":
    scripts.run(main)
