"""Chooser: the answers before a question whose endings are equal after truncation, and the columns of its bundle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime_toys import bag, describe

from compress.errors import CompressError
from compress.runtime import Chooser

LONG = "a " * 60
CLASH = ("text", [f"{LONG}b", f"{LONG}c"])
APART = ("text", ["a", f"{LONG}b"])  # one is truncated, but they still differ


@pytest.fixture
def chooser_folder(tmp_path: Path) -> Path:
    folder = bag(tmp_path / "chooser", logits_bias=(0.0,))
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["BertForMultipleChoice"]}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("source", [list, iter])
def test_endings_that_are_cut_alike_end_the_answers_after_those_before(
    chooser_folder: Path, source: Callable, window: int | None
) -> None:
    chooser, questions = Chooser(chooser_folder, threads=1), [("a", ["b", "c"]), APART, ("d", ["e", "f", "g"])]
    expected = [answer.ending for answer in chooser.predict(questions)]
    answers = chooser.choices(source([*questions, CLASH, ("a", ["b", "c"])]), window=window)
    assert [next(answers).ending for _ in questions] == expected
    with pytest.raises(CompressError, match=r"questions\[3\]: two endings of .* expected shorter ones"):
        next(answers)


def test_a_bundle_of_a_choice_has_up_to_three_columns(chooser_folder: Path) -> None:
    columns = ["sent1", "sent2", "ending", "more"]
    describe(chooser_folder, task={"kind": "choice"}, text_columns=columns[:3])
    assert Chooser(chooser_folder).columns == 3
    describe(chooser_folder, task={"kind": "choice"}, text_columns=columns)
    with pytest.raises(CompressError, match=r"bundle\.json: text_columns: expected at most 3 .* found 4"):
        Chooser(chooser_folder)


def test_the_first_ending_of_a_later_question_may_be_the_one_that_is_cut(chooser_folder: Path) -> None:
    chooser = Chooser(chooser_folder, threads=1)
    with pytest.raises(CompressError, match=r"questions\[1\]: two endings of"):
        chooser.predict([("a", ["b", "c"]), ("text", [LONG, chooser._cutter.shortened(LONG)])])


@pytest.mark.parametrize("option", ["batch_size", "tokens", "window"])
def test_sizes_are_checked_at_the_call(chooser_folder: Path, option: str) -> None:
    with pytest.raises(CompressError, match=f"{option} is 0; expected at least 1"):
        Chooser(chooser_folder, threads=1).choices([("a", ["b", "c"])], **{option: 0})


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b"), ("a", "\ud800")], r"^pairs\[1\]: expected Unicode text"),
        ("ab", r"^pairs\[0\]: expected a pair \(context, ending\), found a text"),
        ([("a", 3)], r"^pairs\[0\]\[1\]: expected a text \(ending\), found int"),
        ([("a", "b", "c")], r"^pairs\[0\]: expected a pair \(context, ending\), found tuple of 3"),
        ([("a", ["b", "c"])], r"^pairs\[0\]\[1\]: expected a text \(ending\), found list"),
        (7, r"^pairs: expected pairs in a list or a stream, found int"),
    ],
)
def test_logits_name_what_is_no_pair(chooser_folder: Path, pairs: Any, message: str) -> None:
    with pytest.raises(CompressError, match=message):
        Chooser(chooser_folder, threads=1).logits(pairs)


def test_logits_are_read_in_windows(chooser_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chooser, pairs = Chooser(chooser_folder, threads=1), [("a b", "c"), ("d", LONG), ("", "e f g")] * 3
    bare: Any = pairs[0]
    expected, sizes = chooser.logits(pairs, batch_size=1), list[int]()
    assert (expected.shape, expected.dtype) == ((9, 1), np.float32)
    cut = chooser._cutter.__call__
    monkeypatch.setattr(chooser, "_cutter", lambda window: sizes.append(len(window)) or cut(window))
    monkeypatch.setattr("compress.runtime.chooser.MOST", 4)
    np.testing.assert_array_equal(chooser.logits(iter(pairs), batch_size=1), expected)
    assert sizes == [4, 4, 1]
    np.testing.assert_array_equal(chooser.logits(bare, batch_size=1), expected[:1])
    assert chooser.logits([]).shape == (0, 1)
