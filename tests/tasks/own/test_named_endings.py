"""Files whose labels name the columns of endings are a choice, also if the user names some of their columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compress.errors import CompressError
from compress.tasks import OwnFiles, own_task
from compress.tasks.own.template import guess_columns


def quiz(folder: Path, header: str) -> tuple[Path, Path]:
    for name in ("train", "dev"):
        rows = [f"what of {name} {i}?,a {i},b {i},{'' if i % 2 else 'c'},{'AB'[i % 2]}" for i in range(20)]
        (folder / f"{name}.csv").write_text("\n".join([header, *rows]))
    return folder / "train.csv", folder / "dev.csv"


@pytest.mark.parametrize(
    "named",
    [{}, {"label": "answer"}, {"text": "question"}, {"text": "question", "label": "answer"}],
    ids=["none", "label", "text", "both"],
)
def test_naming_usual_columns_leaves_the_kind_as_it_is(named: dict[str, Any], tmp_path: Path) -> None:
    spec, _ = own_task(OwnFiles(*quiz(tmp_path, "question,A,B,C,answer"), **named))
    assert (spec.kind, spec.text, spec.label) == ("choice", ("question", "A,B,C"), "answer")


def test_columns_of_other_names(tmp_path: Path) -> None:
    files = quiz(tmp_path, "What is asked,A,B,C,Right one")
    named = OwnFiles(*files, text="What is asked", label="Right one")
    for own in (named, guess_columns(OwnFiles(*files), [])):
        spec, _ = own_task(own)
        assert (spec.kind, spec.text, spec.label) == ("choice", ("What is asked", "A,B,C"), "Right one")


def test_a_context_called_text(tmp_path: Path) -> None:
    spec, _ = own_task(OwnFiles(*quiz(tmp_path, "text,A,B,C,label")))
    assert (spec.kind, spec.text) == ("choice", ("text", "A,B,C"))


@pytest.mark.parametrize("named", [{"text": "A"}, {"text": "question", "pair": "A"}], ids=["text", "pair"])
def test_an_ending_that_is_named_as_a_text_makes_classes(named: dict[str, Any], tmp_path: Path) -> None:
    spec, _ = own_task(OwnFiles(*quiz(tmp_path, "question,A,B,C,answer"), label="answer", **named))
    assert spec.kind == "classification"


@pytest.mark.parametrize("named", [{"text": "qestion"}, {"text": "question", "label": "anwser"}], ids=["text", "label"])
def test_a_column_that_does_not_exist_is_not_replaced(named: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=f"no column '{[*named.values()][-1]}'"):
        own_task(OwnFiles(*quiz(tmp_path, "question,A,B,C,answer"), **named))
