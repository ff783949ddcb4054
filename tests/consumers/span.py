"""Question answering models: the logits of every token, and the answers of pipelines."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consumer_bundles import SPAN_TASK, shipped
from consumer_checks import FILES, JS_FILES, JS_VERSIONS, OPTIMUM, by_node, by_python, check, share_of

from compress.metrics.answers import answer_scores
from compress.runtime import Reader
from compress.runtime.passages import Passages

ANSWERS = {"good": "the film", "bad": "a dull end"}
OTHERS = ("is", "not", "and")  # one token each


def question_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Return one-word questions, and contexts that contain the answer to each once."""
    rng, pairs = np.random.default_rng(seed), []
    for number in range(count):
        parts = [*rng.choice(OTHERS, size=rng.integers(2, 9)), *ANSWERS.values()]
        pairs.append((list(ANSWERS)[number % 2], " ".join(rng.permutation(parts))))
    return pairs


QUESTIONS = question_pairs(20, seed=1)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = tmp_path_factory.mktemp("spans")
    for name, pairs in (("train", question_pairs(300, seed=0)), ("dev", QUESTIONS)):
        rows = [
            {"question": question, "context": context, "answers": [{"text": text, "answer_start": context.index(text)}]}
            for question, context in pairs
            for text in [ANSWERS[question]]
        ]
        (world / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return shipped(world, SPAN_TASK, steps=300)


def check_logits(rows: list[dict[str, Any]], reader: Reader, file: str) -> None:
    """Compare the logits of all tokens, including special ones."""
    cut = Passages(reader.tokenizer, reader.settings.max_length)(*map(list, zip(*QUESTIONS, strict=True)))
    assert cut.question.tolist() == list(range(len(QUESTIONS))), "each context fits into one window"
    ours = {int(chunk[0]): outputs[0] for chunk, outputs in reader._runs(cut.encodings, 1, None)}
    logits = np.concatenate([np.array(row["logits"]).T for row in rows])
    check(logits, np.concatenate([ours[number] for number in range(len(QUESTIONS))]), share_of(file))


@pytest.mark.parametrize("file", FILES)
def test_optimum(file: str, bundle: Path, tmp_path: Path) -> None:
    """The pipeline takes the best span of at most as many tokens as ours."""
    rows = by_python(OPTIMUM, "optimum_onnx_answers.py", bundle, QUESTIONS, file, tmp_path)
    reader = Reader(bundle, precision=FILES[file], threads=1)
    check_logits(rows, reader, file)
    expected = list(reader.answers(QUESTIONS, batch_size=1))
    assert [(row["answer"], row["start"], row["end"]) for row in rows] == [
        (one.answer, one.start, one.end) for one in expected
    ]
    assert len({one.answer for one in expected}) > 1


@pytest.mark.parametrize("file", JS_FILES)
@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    """Its pipeline returns only the text of the tokens, and answers of any length."""
    rows = by_node(version, "transformers_js_answers.mjs", bundle, QUESTIONS, file, tmp_path)
    reader = Reader(bundle, precision=FILES[file], threads=1)
    check_logits(rows, reader, file)
    expected = [one.answer for one in reader.answers(QUESTIONS, batch_size=1)]
    assert [row["answer"] for row in rows] == expected
    assert len(set(expected)) > 1


def test_scores_are_those_of_transformers(tmp_path: Path) -> None:
    """Uses optimum's transformers release, because later ones lack SQuAD's script."""
    words = ["the", "a", "An", "Cat", "cat", "U.S.", "5\u20133", "well-known", "\u00c9t\u00e9", "\u0130", "?", "\u00a0"]
    dice = random.Random(0)

    def text() -> str:
        return dice.choice([" ", "  ", "\n", "\u2003"]).join(dice.choices(words, k=dice.choice([0, 1, 1, 2, 3, 5])))

    rows = [(text(), [text() for _ in range(dice.randrange(4))]) for _ in range(2000)]
    scores = by_python(OPTIMUM, "squad_scores.py", tmp_path, rows, "", tmp_path)
    np.testing.assert_allclose(scores, [answer_scores(*row) for row in rows], rtol=0, atol=1e-12)
    assert all(sum(row == kind for row in scores) > 50 for kind in ([1, 1], [0, 0])), "right ones and wrong ones"
    assert sum(0 < f1 < 1 for _, f1 in scores) > 200
