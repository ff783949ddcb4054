"""A recorded command names a checkpoint's folder as a path, so that it cannot be confused with a card of that name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.cli.reproducing import request_of, words_of
from compress.errors import CompressError
from compress.pipeline import Request, plan_all
from compress.pipeline.request import command_line, own_words
from compress.reproduction import MovedData, locate_files
from compress.tasks import OwnFiles

REPORTS = Path(__file__).parents[2] / "reports"


@pytest.fixture
def here(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The command's folder. Two checkpoints have the names of cards: one here, one beside it."""
    folder = tmp_path / "here"
    folder.mkdir()
    encoder_world(folder, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n").rename(folder / "bert-mini")
    (tmp_path / "other").mkdir()
    beside = encoder_world(tmp_path / "other", tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    beside.rename(tmp_path / "other" / "bert-small")
    monkeypatch.chdir(folder)
    return folder


def recorded(request: Request) -> str:
    return command_line(request, plan_all(request)[0])


@pytest.mark.parametrize(
    ("teacher", "word"),
    [
        ("{here}/bert-mini", "./bert-mini"),
        ("./bert-mini", "./bert-mini"),
        ("../other/bert-small", "./bert-small"),
        ("bert-mini", "bert-mini"),  # the card
    ],
)
def test_a_folder_is_recorded_as_one(here: Path, teacher: str, word: str) -> None:
    command = recorded(Request(("int8",), ("task.yaml",), teacher=teacher.format(here=here)))
    assert f" --teacher {word} " in f"{command} "


def test_a_students_folder_is_recorded_as_one(here: Path) -> None:
    request = Request(("logits",), ("task.yaml",), teacher="bert-mini", student=f"{here}/bert-mini")
    command = recorded(request)
    assert "--teacher bert-mini --student ./bert-mini" in command
    again = request_of({**locate_files(words_of(command), here.parent, MovedData()), "out": Path("runs")})
    assert plan_all(again)[0].name == plan_all(replace(request, own=again.own))[0].name


def test_it_is_looked_for_beside_the_report_and_here(here: Path, tmp_path: Path) -> None:
    words = words_of("compress run int8 -t task.yaml --teacher ./bert-small --student ./bert-mini")
    cards = locate_files(words, tmp_path / "other", MovedData())
    assert (cards["teacher"], cards["student"]) == ([f"{tmp_path}/other/bert-small"], "./bert-mini")
    with pytest.raises(CompressError, match=r"--teacher \./bert-small: is neither in .*empty nor here"):
        locate_files(words, tmp_path / "empty", MovedData())
    (here / "bert-small").mkdir()
    assert locate_files(words, Path(), MovedData())["teacher"] == ["./bert-small"]


def test_a_training_file_is_left_out_where_it_is_all_of_the_corpus() -> None:
    own = OwnFiles(Path("train.txt"), Path("dev.tsv"))
    assert own_words(own, ("train.txt",))[:1] == ["--dev"]
    for corpus in ((), ("train.txt", "more.txt"), ("more.txt", "train.txt"), ("more.txt",)):
        assert own_words(own, corpus)[:2] == ["--train", "train.txt"]
