"""Multiple choice models: the logit of each ending, and the chosen ending."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from consumer_bundles import CHOICE_TASK, shipped
from consumer_checks import FILES, JS_FILES, JS_VERSIONS, OPTIMUM, by_node, by_python, check, share_of

from compress.runtime import Chooser

RIGHT = "good"  # only the right ending has this word
OTHERS = ("is", "not", "and", "the", "a")  # one token each
Question = tuple[str, list[str]]


def questions(count: int, seed: int) -> list[Question]:
    """Return contexts, every fifth too long, with two to four endings."""
    rng, examples = np.random.default_rng(seed), []
    for number in range(count):
        endings = [" ".join(rng.choice(OTHERS, size=size)) for size in (3, 4, 5, 6)[: 2 + number % 3]]
        place = int(rng.integers(len(endings)))
        endings[place] += f" {RIGHT}"
        context = " ".join(rng.choice(OTHERS, size=40 if number % 5 == 4 else 6))
        examples.append((context, endings))
    return examples


QUESTIONS = questions(20, seed=1)
FITTING = [question for number, question in enumerate(QUESTIONS) if number % 5 != 4]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = tmp_path_factory.mktemp("choices")
    for name, examples in (("train", questions(300, seed=0)), ("dev", QUESTIONS)):
        rows = (
            {"context": context, "endings": endings, "label": [RIGHT in one.split(" ") for one in endings].index(True)}
            for context, endings in examples
        )
        (world / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return shipped(world, CHOICE_TASK, steps=150)


def check_endings(rows: list[list[float]], questions: list[Question], bundle: Path, file: str) -> None:
    chooser = Chooser(bundle, precision=FILES[file], threads=1)
    expected = list(chooser.choices(questions, batch_size=1))
    assert [int(np.argmax(row)) for row in rows] == [one.place for one in expected]
    assert len({one.place for one in expected}) > 2
    pairs = [(context, ending) for context, endings in questions for ending in endings]
    logits = [[logit] for row in rows for logit in row]
    check(logits, np.asarray(chooser.logits(pairs, batch_size=1)), share_of(file))


@pytest.mark.parametrize("file", FILES)
def test_optimum(file: str, bundle: Path, tmp_path: Path) -> None:
    rows = by_python(OPTIMUM, "optimum_onnx_endings.py", bundle, QUESTIONS, file, tmp_path)
    check_endings(rows, QUESTIONS, bundle, file)


@pytest.mark.parametrize("file", JS_FILES)
@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    """Only contexts that fit: it would cut the end of longer pairs, and so the endings."""
    rows = by_node(version, "transformers_js_endings.mjs", bundle, FITTING, file, tmp_path)
    check_endings(rows, FITTING, bundle, file)
