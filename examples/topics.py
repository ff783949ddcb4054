"""Train a small model that assigns any number of topics to a text, distil it, ship it and label new texts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import scripts

import compress
from compress.bundle import ship, verify
from compress.runtime import Classifier

SENTENCES = {
    "economy": ("prices rise again", "the bank lowers its rates"),
    "music": ("the band plays a new song", "the singer is on the radio"),
    "sport": ("the club wins the match", "the team has a new coach"),
}
OTHERS = ("nobody knows why", "this is all for today", "it was a long day")
NEW = ("the singer is on the radio and prices rise again", "the team wins the match", "it was a long day")


def write(path: Path, count: int, seed: int) -> Path:
    """Write JSON lines of a text with up to two topics, and these topics."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        for number in range(count):
            topics = rng.sample(list(SENTENCES), rng.randint(0, 2))
            text = " and ".join(rng.choice(SENTENCES[topic]) for topic in topics) or rng.choice(OTHERS)
            file.write(json.dumps({"text": f"{text} {number}", "topics": topics}) + "\n")
    return path


def main() -> None:
    options = scripts.options(__doc__, teacher="an encoder of yours", out="topics", steps="sixteen epochs")

    train, dev = write(options.out / "train.jsonl", 600, seed=1), write(options.out / "dev.jsonl", 100, seed=2)
    length = "epochs=16" if options.steps is None else f"max_steps={options.steps}"
    (result,) = compress.run(
        "distilbert",
        train=train,
        dev=dev,
        label="topics",
        max_length=48,
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
        topics = [f"{topic} {score:.3f}" for topic, score in answer.scores.items() if score > 0.5]
        print(f"{', '.join(topics) or '-'}  {text}")


if __name__ == "__main__":
    scripts.run(main)
