"""Train a small model on made-up beginnings of stories, distil it, ship it and choose the endings that fit new ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

import scripts

import compress
from compress.bundle import ship, verify
from compress.runtime import Chooser

PEOPLE = ("the boy", "the girl", "my friend", "the old man", "a tall woman")
STORIES = {
    "put water in the kettle": ("made tea", "waited until it was hot"),
    "opened the book": ("read the first page", "looked for a picture in it"),
    "sat down in the car": ("drove to the river", "turned on the engine"),
    "went into the garden": ("gave the flowers water", "took an apple from the tree"),
    "found the camera": ("made a picture of the house", "put a new film in it"),
}
NEW = {
    "the old man opened the book .": ["he drove to the river .", "he read the first page .", "he made tea ."],
    "a tall woman found the camera .": ["she put a new film in it .", "she gave the flowers water ."],
}


def write(path: Path, count: int, seed: int) -> Path:
    """Write JSON lines of a story's beginning, three endings, and the index of the one from the same story."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        for number in range(count):
            stories, label = rng.sample(list(STORIES), 3), rng.randrange(3)
            endings = [f"then {rng.choice(STORIES[story])} ." for story in stories]
            context = f"{rng.choice(PEOPLE)} {stories[label]} . {number}"
            file.write(json.dumps({"context": context, "endings": endings, "label": label}) + "\n")
    return path


def main() -> None:
    options = scripts.options(__doc__, teacher="an encoder of yours", out="choose", steps="four epochs")

    train, dev = write(options.out / "train.jsonl", 600, seed=1), write(options.out / "dev.jsonl", 100, seed=2)
    length = "epochs=4" if options.steps is None else f"max_steps={options.steps}"
    (result,) = compress.run(
        "distilbert",
        train=train,
        dev=dev,
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
    model = Chooser(bundle)
    for context, endings in NEW.items():
        choice = model.choose(context, endings)
        print(f"{context} {choice.ending} {choice.probability:.3f}")


if __name__ == "__main__":
    scripts.run(main)
