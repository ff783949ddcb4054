"""Train a small reader on made-up questions about short texts, distil it, ship it and answer new questions."""

from __future__ import annotations

import json
import random
from pathlib import Path

import scripts

import compress
from compress.bundle import ship, verify
from compress.runtime import Reader

PEOPLE = ("Ada", "Alan", "Grace", "Marie", "Rosa", "Carl", "Emmy", "Nina")
PLACES = ("London", "Paris", "New York", "Warsaw", "Rome", "San Remo", "Berlin", "Oslo")
CONTEXT = "{who} moved from {origin} to {goal} in {year} ."
QUESTIONS = {
    "who": "who moved ?",
    "origin": "where from ?",
    "goal": "where to ?",
    "year": "when was it ?",
}


def write(path: Path, count: int, seed: int) -> Path:
    """Write JSON lines of a question, a context, and the answer with its offset in the context."""
    rng = random.Random(seed)
    with scripts.data_file(path) as file:
        for _ in range(count):
            origin, goal = rng.sample(PLACES, 2)
            facts = {"who": rng.choice(PEOPLE), "origin": origin, "goal": goal, "year": str(rng.randint(1800, 1999))}
            context, fact = CONTEXT.format(**facts), rng.choice(list(QUESTIONS))
            answer = {"text": facts[fact], "answer_start": context.index(facts[fact])}
            file.write(json.dumps({"question": QUESTIONS[fact], "context": context, "answers": [answer]}) + "\n")
    return path


def main() -> None:
    options = scripts.options(__doc__, teacher="an encoder of yours", out="answer", steps="eight epochs")

    train, dev = write(options.out / "train.jsonl", 600, seed=1), write(options.out / "dev.jsonl", 100, seed=2)
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
    context = CONTEXT.format(who="Emmy", origin="Oslo", goal="New York", year=1891)
    for question in QUESTIONS.values():
        span = Reader(bundle).answer(question, context)
        print(f"{question} {span.answer} {span.score:.3f}, characters {span.start} to {span.end}")


if __name__ == "__main__":
    scripts.run(main)
