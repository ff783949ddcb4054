"""A user's own calibration texts: what is read, what is refused, and what the file's key depends on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Listener, Request, plan_all, run_all
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.results.reported import ReportedSource
from compress.pipeline.stages.calibration import length_stratified, read_lines, refuse_reported
from compress.spec.task import Files, TaskSpec
from compress.tasks import Split, encode


def lines(path: Path, texts: list[str]) -> Path:
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def task(columns: int, **fields: Any) -> TaskSpec:
    names = ("first", "second")[:columns]
    settings = {"name": "t", "text": names, "label": "label", "metrics": ("accuracy",), **fields}
    return TaskSpec(**settings, files=Files(train="train.csv", dev="dev.csv"))


@pytest.mark.parametrize(
    ("kind", "metrics", "columns"),
    [("classification", ("accuracy",), 1), ("tagging", ("accuracy",), 1), ("span", ("exact_match",), 2)],
)
def test_long_lines_are_read_as_the_task_s_own_texts_are(
    tmp_path: Path, toy_tokenizer: Tokenizer, kind: str, metrics: tuple[str, ...], columns: int
) -> None:
    spec = task(columns, kind=kind, metrics=metrics)
    long = " ".join(["a", "fine", "dull", "film"] * 10 + ["end"])
    path = lines(tmp_path / "a.txt", [long if columns == 1 else f"a film\t{long}"] * 32)
    encoded = encode(toy_tokenizer, read_lines(path, spec), 16)
    last = toy_tokenizer.encode("end", add_special_tokens=False).ids[-1]
    ends = sum(last in ids for ids in encoded.input_ids)
    if kind == "classification":
        assert (len(encoded), ends) == (32, 0)
    else:
        assert len(encoded) >= 32 * 3 and ends == 32
    (feed, *_) = length_stratified(encoded, 0, 64)
    assert feed["input_ids"].shape[1] <= 16


def test_of_a_context_and_an_ending_the_context_is_cut_as_the_task_s_own_are(
    tmp_path: Path, toy_tokenizer: Tokenizer
) -> None:
    context, ending = " ".join("b" * 10), " ".join([*"a" * 9, "end"])
    path = lines(tmp_path / "a.txt", [f"{context}\t{ending}"] * 32)
    last = toy_tokenizer.encode("end", add_special_tokens=False).ids[-1]
    for kind, kept in (("choice", 32), ("classification", 0)):
        encoded = encode(toy_tokenizer, read_lines(path, task(2, kind=kind)), 16)
        assert (len(encoded), encoded.lengths.max()) == (32, 16)
        assert sum(last in ids for ids in encoded.input_ids) == kept
        feeds = length_stratified(encoded, 0, 40)
        assert sum(len(feed["input_ids"]) for feed in feeds) == 32


def test_lines_are_examples_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.txt", [f"text {number}" for number in range(40)] + ["", "  "])
    assert read_lines(path, task(1)).texts == ([f"text {number}" for number in range(40)],)
    pairs = lines(tmp_path / "b.txt", [f"first {number}\tsecond {number}" for number in range(32)])
    assert read_lines(pairs, task(2)).texts[1][3] == "second 3"


def test_a_line_ends_at_a_line_feed_alone(tmp_path: Path) -> None:
    """As in files of examples: other separators of lines are part of a text, and a byte order mark is not."""
    texts = [f"one\u2028two\x0b{number}\x85" for number in range(32)]
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(texts).encode())
    assert read_lines(path, task(1)).texts == (texts,)


@pytest.mark.parametrize(
    ("texts", "columns", "message"),
    [
        (["one"] * 31, 1, "expected at least 32 lines of text, found 31"),
        (["", *["one\ttwo"] * 40], 1, r"a\.txt:2: expected 1 text"),
        (["one\ttwo"] * 3 + ["three"], 2, r"a\.txt:4: expected 2 text"),
    ],
)
def test_what_cannot_serve_is_named(texts: list[str], columns: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=message):
        read_lines(lines(tmp_path / "a.txt", texts), task(columns))
    with pytest.raises(CompressError, match=r"quantize\.calibration_text: .*none\.txt: no such file"):
        read_lines(tmp_path / "none.txt", task(1))


@pytest.mark.parametrize("variant", ["dev 7", "DEV 7", " dev  7 "])
def test_a_text_of_a_reported_split_is_refused_whatever_its_case_and_spacing(variant: str, tmp_path: Path) -> None:
    dev, mine = [f"dev {number}" for number in range(50)], [f"mine {number}" for number in range(39)]
    for name, texts in {"train": mine, "dev": dev}.items():
        rows = "".join(f"{text},{'yes' if number % 2 else 'no'}\n" for number, text in enumerate(texts))
        (tmp_path / f"{name}.csv").write_text("text,label\n" + rows)
    files = Files(train="train.csv", dev="dev.csv")
    spec = TaskSpec(name="t", text=("text",), label="label", metrics=("accuracy",), files=files)
    source = TaskSource(spec, tmp_path, None)
    refuse_reported("mine.txt", Split((mine,), np.zeros(39)), source)
    with pytest.raises(CompressError, match=r"mine\.txt: 1 of 40 texts are in the split `dev`.* text 40\)"):
        refuse_reported("mine.txt", Split(([*mine, variant],), np.zeros(40)), source)
    with pytest.raises(CompressError, match=r"mine\.txt: 50 of 50 texts"):
        refuse_reported("mine.txt", Split((dev,), np.zeros(50)), source)


def test_a_text_that_changed_since_the_plan_was_made_is_refused(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    """Otherwise the file made from the new text would be stored under the key of the old one."""
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    text = lines(tmp_path / "texts.txt", [f"a fine film {number}" for number in range(32)])

    class Editing(Listener):
        def stage(self, label: str, cached: bool) -> None:
            if label.startswith("export"):
                lines(text, [f"a dull film {number}" for number in range(32)])

    overrides = ("quantize.method=static", f"quantize.calibration_text={text}")
    task = str(tmp_path / "task.yaml")
    request = Request(("int8",), (task,), teacher=str(teacher), overrides=overrides, root=tmp_path / "runs", bench=None)
    with pytest.raises(CompressError, match=r"texts\.txt: it changed since this command started"):
        run_all(request, Editing())


def test_it_is_refused_before_anything_is_made(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    task, text = str(tmp_path / "task.yaml"), tmp_path / "texts.txt"

    def request() -> Request:
        overrides = ("quantize.method=static", f"quantize.calibration_text={text}")
        return Request(("int8",), (task,), teacher=str(teacher), overrides=overrides, root=tmp_path / "runs")

    with pytest.raises(CompressError, match=r"^quantize\.calibration_text: .*texts\.txt: no such file"):
        plan_all(request())
    lines(text, [f"a fine film {number}" for number in range(32)])
    first = plan_all(request())[0]
    lines(text, [f"a dull film {number}" for number in range(32)])
    second = plan_all(request())[0]
    keys = [plan.keys["teacher-int8"] for plan in (first, second)]
    assert keys[0] != keys[1]
    lines(text, ReportedSource.of(first.task).data.splits["dev"].texts[0] * 4)
    with pytest.raises(CompressError, match="on which scores are reported"):
        run_all(request())
    assert not list((tmp_path / "runs").glob("*"))
