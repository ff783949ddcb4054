"""Train a small model that scores reviews, distil it, ship it and score new reviews."""

from __future__ import annotations

import json
import random
from pathlib import Path

import scripts

import compress
from compress.bundle import ship, verify
from compress.runtime import Classifier

WORDS = {"superb": 2.0, "good": 1.0, "plain": 0.0, "dull": -1.0, "awful": -2.0}
PARTS = ("movie", "story", "music", "cast", "ending", "plot", "dialogue", "camera")
NEW = ("the story was superb and the music was good", "the cast was plain and the plot was dull")


def write(path: Path, count: int, seed: int) -> Path:
    """Write JSON lines of a review with two parts and its score from 1 to 5: 3 plus the mean of its words' values."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        for number in range(count):
            (one, other), words = rng.sample(PARTS, 2), rng.choices(list(WORDS), k=2)
            review = f"the {one} was {words[0]} and the {other} was {words[1]} {number}"
            score = 3 + (WORDS[words[0]] + WORDS[words[1]]) / 2
            file.write(json.dumps({"review": review, "stars": score}) + "\n")
    return path


def main() -> None:
    options = scripts.options(__doc__, teacher="an encoder of yours", out="rate", steps="eight epochs")

    train, dev = write(options.out / "train.jsonl", 600, seed=1), write(options.out / "dev.jsonl", 100, seed=2)
    length = "epochs=8" if options.steps is None else f"max_steps={options.steps}"
    (result,) = compress.run(
        "distilbert",
        train=train,
        dev=dev,
        text="review",
        label="stars",
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
        print(f"{answer.score:.2f}  {text}")


if __name__ == "__main__":
    scripts.run(main)
