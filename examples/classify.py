"""Train a small classifier on made-up messages to a shop, distil it, ship it and sort new messages."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import scripts

import compress
from compress.bundle import ship, verify
from compress.runtime import Classifier

ITEMS = ("book", "camera", "window", "car", "phone", "song", "garden", "door", "boat", "movie")
MESSAGES = {
    "account": ("i cannot open my page for the {}", "my name on the {} page is not right", "the {} page says i am new"),
    "delivery": ("the {} is still not here", "when does my {} come", "i have waited for the {} for weeks"),
    "payment": (
        "i paid for the {} once and not twice",
        "the {} cost more than you said",
        "my money for the {} is gone",
    ),
}
NEW = ("when does the last song come", "the phone cost more than my car", "i cannot open my page")


def write(path: Path, count: int, seed: int) -> Path:
    """Write a CSV of messages and their departments."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        rows = csv.writer(file)
        rows.writerow(["message", "department"])
        for number in range(count):
            department = rng.choice(list(MESSAGES))
            message = rng.choice(MESSAGES[department]).format(rng.choice(ITEMS))
            rows.writerow(
                [rng.choice(("hello , {}", "{} , please help", "{}")).format(message) + f" {number}", department]
            )
    return path


def main() -> None:
    options = scripts.options(__doc__, teacher="an encoder of yours", out="classify", steps="eight epochs")

    train, dev = write(options.out / "train.csv", 600, seed=1), write(options.out / "dev.csv", 100, seed=2)
    length = "epochs=8" if options.steps is None else f"max_steps={options.steps}"
    (result,) = compress.run(
        "distilbert",
        train=train,
        dev=dev,
        text="message",
        label="department",
        max_length=32,
        teacher=options.teacher,
        root=options.out / "runs",
        progress=True,
        bench=None,  # without latency, which takes longer than all the rest here
        overrides=[f"{stage}.{length}" for stage in ("finetune", "distill")],
    )
    for model in result.models:
        scores = ", ".join(f"{metric} {points:.2f}" for metric, points in model.scores["dev"].items())
        print(f"{model.name} {model.precision}: {scores}")

    runs = options.out / "runs"
    bundle = ship(runs / result.run, options.out / "bundle", store=runs / ".store", force=True)
    print(f"verified: {verify(bundle).passed}")
    for text, answer in zip(NEW, Classifier(bundle).predict(NEW), strict=True):
        print(f"{answer.label} {answer.score:.3f}  {text}")


if __name__ == "__main__":
    scripts.run(main)
