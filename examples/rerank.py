"""Fine-tune a small cross-encoder on questions and passages of a made-up FAQ, distil it, ship it and rank passages."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import scripts

import compress
from compress.bundle import ship, verify
from compress.runtime import Ranker

TOPICS = ("garden", "kitchen", "window", "door", "car", "boat", "book", "phone", "river", "school")
QUERIES = ("how do i clean a {}", "where is the {}", "what does a {} cost", "when was the {} made")
PASSAGES = (
    "you clean a {} with water",
    "the {} is near the house",
    "a {} costs very little",
    "the {} was made last year",
)


def write(path: Path, count: int, seed: int) -> Path:
    """Write a CSV with four passages per question: the answer (2), another answer on the same topic (1), two on other topics (0)."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        rows = csv.writer(file)
        rows.writerow(["query", "passage", "relevance"])
        for number in range(count):
            (topic, *others), (form, other) = rng.sample(TOPICS, 3), rng.sample(range(len(QUERIES)), 2)
            query = f"{QUERIES[form].format(topic)} , {number}"
            passages = [(PASSAGES[form].format(topic), 2), (PASSAGES[other].format(topic), 1)]
            passages += [(PASSAGES[form].format(each), 0) for each in others]
            rows.writerows([query, passage, relevance] for passage, relevance in rng.sample(passages, len(passages)))
    return path


def main() -> None:
    options = scripts.options(__doc__, teacher="a cross-encoder of yours", out="rerank", steps="the recipe's")

    train, dev = write(options.out / "train.csv", 200, seed=1), write(options.out / "dev.csv", 40, seed=2)
    steps = [] if options.steps is None else [f"{stage}.max_steps={options.steps}" for stage in ("finetune", "distill")]
    (result,) = compress.run(
        "logits",
        train=train,
        dev=dev,
        max_length=32,
        teacher=options.teacher,
        root=options.out / "runs",
        progress=True,
        bench=None,
        overrides=["distill.losses=[{name: margin_mse}, {name: soft_target}, {name: hard_label}]", *steps],
    )
    for model in result.models:
        scores = ", ".join(f"{metric} {points:.2f}" for metric, points in model.scores["dev"].items())
        print(f"{model.name} {model.precision}: {scores}")

    runs = options.out / "runs"
    bundle = ship(runs / result.run, options.out / "bundle", store=runs / ".store", force=True)
    print(f"verified: {verify(bundle).passed}")
    for hit in Ranker(bundle).rank("where is the boat", [passage.format("boat") for passage in PASSAGES]):
        print(f"{hit.score:+.3f}  {hit.passage}")


if __name__ == "__main__":
    scripts.run(main)
