"""Readers of questions: the logits of every token, and the answers that pipelines make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consumer_bundles import SPAN_TASK, shipped
from consumer_checks import FILES, JS_FILES, JS_VERSIONS, OPTIMUM, by_node, by_python, check, share_of

from compress.runtime import Reader
from compress.runtime.passages import Passages

ANSWERS = {"good": "the film", "bad": "a dull end"}
OTHERS = ("is", "not", "and")  # of one token each


def asked(count: int, seed: int) -> list[tuple[str, str]]:
    """Questions of one word, and contexts in which the answer to each stands once."""
    rng, pairs = np.random.default_rng(seed), []
    for number in range(count):
        parts = [*rng.choice(OTHERS, size=rng.integers(2, 9)), *ANSWERS.values()]
        pairs.append((list(ANSWERS)[number % 2], " ".join(rng.permutation(parts))))
    return pairs


QUESTIONS = asked(20, seed=1)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = tmp_path_factory.mktemp("spans")
    for name, pairs in (("train", asked(300, seed=0)), ("dev", QUESTIONS)):
        rows = [
            {"question": question, "context": context, "answers": [{"text": text, "answer_start": context.index(text)}]}
            for question, context in pairs
            for text in [ANSWERS[question]]
        ]
        (world / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return shipped(world, SPAN_TASK, steps=300)


def check_logits(rows: list[dict[str, Any]], reader: Reader, file: str) -> None:
    """Those of all tokens, special ones too."""
    cut = Passages(reader.tokenizer, reader.settings.max_length)(*map(list, zip(*QUESTIONS, strict=True)))
    assert cut.question.tolist() == list(range(len(QUESTIONS))), "each context fits into one window"
    ours = {int(chunk[0]): found[0] for chunk, found in reader._runs(cut.encodings, 1, None)}
    found = np.concatenate([np.array(row["logits"]).T for row in rows])
    check(found, np.concatenate([ours[number] for number in range(len(QUESTIONS))]), share_of(file))


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
    """Its pipeline has the text of the tokens alone, and answers of any length."""
    rows = by_node(version, "transformers_js_answers.mjs", bundle, QUESTIONS, file, tmp_path)
    reader = Reader(bundle, precision=FILES[file], threads=1)
    check_logits(rows, reader, file)
    expected = [one.answer for one in reader.answers(QUESTIONS, batch_size=1)]
    assert [row["answer"] for row in rows] == expected
    assert len(set(expected)) > 1
