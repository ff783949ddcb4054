"""Embedded tasks in GLUE's format, from seeded generators: no download, the same examples on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from ...errors import CompressError
from ...spec.task import Synthetic
from .draw import Draw
from .entailment import entailment
from .sentiment import sentiment
from .similarity import similarity

GENERATOR_VERSION = 2  # raise when a generator makes other examples for the same seed
Example = tuple[str | float, ...]  # the texts, then the label

GENERATORS: dict[str, Callable[[Draw], Example]] = {
    "sentiment": sentiment,
    "entailment": entailment,
    "similarity": similarity,
}


def generate(spec: Synthetic) -> Mapping[str, tuple[Example, ...]]:
    """Return `train` and `dev`. No example occurs twice, and no sentence of dev is in train.

    Raises `CompressError` if the generator cannot make that many examples.
    """
    return _generate(spec.generator, spec.seed, spec.train, spec.dev)


@lru_cache(maxsize=4)  # a command reads both splits of a task several times
def _generate(generator: str, seed: int, train_size: int, dev_size: int) -> Mapping[str, tuple[Example, ...]]:
    make = GENERATORS[generator]
    seen: set[Example] = set()
    train = _distinct(make, Draw(f"{generator} train {seed}"), train_size, seen, set())
    sentences = {text for example in train for text in example[:-1]}
    dev = _distinct(make, Draw(f"{generator} dev {seed}"), dev_size, seen, sentences)
    return {"train": tuple(train), "dev": tuple(dev)}


def _distinct(
    make: Callable[[Draw], Example], draw: Draw, count: int, seen: set[Example], taken: set[str | float]
) -> list[Example]:
    """Return `count` new examples, none with a sentence in `taken`; adds them to `seen`."""
    examples: list[Example] = []
    for _ in range(50 * count + 1000):
        if len(examples) == count:
            return examples
        example = make(draw)
        if example[:-1] not in seen and taken.isdisjoint(example[:-1]):
            seen.add(example[:-1])
            examples.append(example)
    raise CompressError(f"synthetic: expected {count:,} different examples, the generator found {len(examples):,}")
