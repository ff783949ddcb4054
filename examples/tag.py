"""Train a small tagger on made-up sentences with people and places, distil it, ship it and find them in a new text."""

from __future__ import annotations

import random
from pathlib import Path

import scripts

import compress
from compress.bundle import ship, verify
from compress.runtime import Tagger

FIRST = ("Ada", "Alan", "Grace", "Marie", "Rosa", "Carl", "Emmy", "Nina")
LAST = ("Lovelace", "Turing", "Hopper", "Curie", "Parks", "Gauss", "Noether", "Simone")
PLACES = ("London", "Paris", "New York", "Warsaw", "Rome", "San Remo", "Berlin", "Oslo")
FORMS = ("PER lived in LOC .", "PER moved from LOC to LOC .", "in LOC nobody knew PER .", "PER was a friend of PER .")
TEXT = "Grace Turing moved from Oslo to San Remo ."


def write(path: Path, count: int, seed: int) -> Path:
    """Write a word and its label per line, and a blank line after each sentence."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        for _ in range(count):
            for word in rng.choice(FORMS).split():
                names = {"PER": f"{rng.choice(FIRST)} {rng.choice(('', rng.choice(LAST)))}", "LOC": rng.choice(PLACES)}
                for place, part in enumerate(names.get(word, word).split()):
                    tag = f"{'I' if place else 'B'}-{word}" if word in names else "O"
                    file.write(f"{part} {tag}\n")
            file.write("\n")
    return path


def main() -> None:
    options = scripts.options(__doc__, teacher="an encoder of yours", out="tag", steps="eight epochs")

    train, dev = write(options.out / "train.conll", 600, seed=1), write(options.out / "dev.conll", 100, seed=2)
    length = "epochs=8" if options.steps is None else f"max_steps={options.steps}"
    (result,) = compress.run(
        "distilbert",
        train=train,
        dev=dev,
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
    (entities,) = Tagger(bundle).predict([TEXT])
    for entity in entities:
        print(f"{entity.label} {entity.score:.3f}  {entity.text}, characters {entity.start} to {entity.end}")


if __name__ == "__main__":
    scripts.run(main)
