"""Train a small model that gives texts any number of topics, distil it, ship it and label new texts."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import compress
from compress.bundle import ship, verify
from compress.runtime import Classifier

SENTENCES = {
    "economy": ("the bank lowers its rates", "prices rise again", "the firm sells more cars"),
    "music": ("the band plays a new song", "the singer is on the radio", "nobody likes the old record"),
    "sport": ("the club wins the match", "the runner is first", "the team has a new coach"),
    "weather": ("it will rain all day", "the wind is strong", "snow falls in the hills"),
}
NEW = ("the singer is first , and prices rise", "it will rain on the match", "nobody knows why")


def write(path: Path, count: int, seed: int) -> Path:
    """A text of none to three sentences, each on a topic of its own, and these topics."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            topics = rng.sample(list(SENTENCES), rng.randint(0, 3))
            text = " , and ".join([f"this is text {number}", *(rng.choice(SENTENCES[topic]) for topic in topics)])
            file.write(json.dumps({"text": text, "topics": topics}) + "\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", default="bert-mini", help="a card, or the folder of an encoder of yours")
    parser.add_argument("--out", type=Path, default=Path("topics"), help="folder for the files, runs and bundle")
    parser.add_argument("--steps", type=int, help="optimizer steps of each training; default: eight epochs")
    options = parser.parse_args()

    options.out.mkdir(parents=True, exist_ok=True)
    train, dev = write(options.out / "train.jsonl", 600, seed=1), write(options.out / "dev.jsonl", 100, seed=2)
    length = "epochs=8" if options.steps is None else f"max_steps={options.steps}"
    (result,) = compress.run(
        "distilbert",
        train=train,
        dev=dev,
        label="topics",
        max_length=48,
        teacher=options.teacher,
        root=options.out / "runs",
        bench=None,  # without latency, which takes longer than all the rest here
        overrides=[f"{stage}.{length}" for stage in ("finetune", "distill")],
    )
    for model in result.models:
        print(f"{model.name} {model.precision}: {model.scores['dev']}")

    bundle = ship(options.out / "runs" / result.run, options.out / "bundle", store=options.out / "runs" / ".store")
    print(f"verified: {verify(bundle).passed}")
    for text, answer in zip(NEW, Classifier(bundle).predict(NEW), strict=True):
        print(f"{', '.join(answer.labels) or '-'}  {text}")


if __name__ == "__main__":
    main()
