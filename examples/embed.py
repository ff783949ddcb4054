"""Distil a sentence encoder on made-up pairs of texts, ship it and find the text nearest to another."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import scripts

import compress
from compress.bundle import ship, verify
from compress.runtime import Embedder

THINGS = ("garden", "kitchen", "window", "door", "car", "boat", "book", "phone", "river", "school")
STATES = ("is near the house", "is very old", "was made last year", "costs little", "has water in it", "is not here")
TEXTS = ["the boat is near the house", "a book costs little", "the old car has water in it"]


def write(path: Path, count: int, seed: int) -> Path:
    """Write a CSV of text pairs with a similarity from 0 to 5: 3 for the same thing, 2 for the same state."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        rows = csv.writer(file)
        rows.writerow(["first", "second", "score"])
        for number in range(count):
            (one, other), (said, else_said) = rng.sample(THINGS, 2), rng.sample(STATES, 2)
            same, alike = rng.random() < 0.5, rng.random() < 0.5
            first = f"the {one} {said} {number}"
            rows.writerow(
                [first, f"a {one if same else other} {said if alike else else_said}", 3.0 * same + 2.0 * alike]
            )
    return path


def write_texts(path: Path, count: int, seed: int) -> None:
    """Write plain text, one text per line."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        file.writelines(f"the {rng.choice(THINGS)} {rng.choice(STATES)} {number}\n" for number in range(count))


def main() -> None:
    options = scripts.options(__doc__, teacher="a sentence encoder", out="embed", steps="eight epochs")

    train, dev = write(options.out / "train.csv", 600, seed=1), write(options.out / "dev.csv", 100, seed=2)
    write(options.out / "tuning.csv", 100, seed=3)  # tuning.csv beside texts.txt: train on plain text
    write_texts(options.out / "texts.txt", 600, seed=4)
    length = "epochs=8" if options.steps is None else f"max_steps={options.steps}"
    (result,) = compress.run(
        "distilbert",
        train=train,
        dev=dev,
        text="first",
        pair="second",
        label="score",
        kind="embedding",
        max_length=32,
        teacher=options.teacher,
        root=options.out / "runs",
        progress=True,
        bench=None,  # without latency, which takes longer than all the rest here
        overrides=[f"distill.{length}"],
    )
    for model in result.models:
        scores = ", ".join(f"{metric} {points:.2f}" for metric, points in model.scores["dev"].items())
        print(f"{model.name} {model.precision}: {scores}")

    runs = options.out / "runs"
    bundle = ship(runs / result.run, options.out / "bundle", store=runs / ".store", force=True)
    print(f"verified: {verify(bundle).passed}")
    model = Embedder(bundle)
    cosines = model.embed(TEXTS) @ model.embed("the boat is very old")[0]
    for text, cosine in sorted(zip(TEXTS, cosines.tolist(), strict=True), key=lambda pair: -pair[1]):
        print(f"{cosine:+.3f}  {text}")


if __name__ == "__main__":
    scripts.run(main)
