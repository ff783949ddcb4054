"""`--teacher OWNER/NAME[@REVISION]`: the hub's repository, pinned, unless a folder here has that name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Request, plan_all, run_all
from compress.pipeline.request import command_line

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40


@pytest.fixture
def cache(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The hub's cache as its client lays it out, with `acme/Tiny-BERT` at two commits, the first of which is `main`."""
    world = tmp_path / "world"
    world.mkdir()
    teacher = encoder_world(world, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    repository = tmp_path / "hub" / "models--acme--Tiny-BERT"
    for commit in (COMMIT, OTHER):
        (repository / "snapshots" / commit).mkdir(parents=True)
        for path in teacher.iterdir():
            (repository / "snapshots" / commit / path.name).write_bytes(path.read_bytes())
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(world)
    return tmp_path


def request(teacher: str) -> Request:
    return Request(
        ("int8",), ("task.yaml",), teacher=teacher, precision="fp32", threads=1, bench=None,
        overrides=("finetune.max_steps=1", "quantize.method=dynamic"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("word", "commit"),
    [("acme/Tiny-BERT", COMMIT), ("acme/Tiny-BERT@main", COMMIT), (f"acme/Tiny-BERT@{OTHER}", OTHER)],
)
def test_the_commit_is_in_the_record_and_in_the_command(cache: Path, word: str, commit: str) -> None:
    (plan,) = plan_all(request(word))
    origin = plan.teacher.origin
    assert (origin.kind, origin.name, origin.revision) == ("hub", "acme/Tiny-BERT", commit)
    assert (plan.teacher.card.name, plan.teacher.card.title) == ("tiny-bert", "acme/Tiny-BERT")
    assert f"--teacher acme/Tiny-BERT@{commit}" in command_line(request(word), plan)


def test_a_result_pins_it(cache: Path) -> None:
    (result,) = run_all(request("acme/Tiny-BERT"))
    assert f"acme/Tiny-BERT@{COMMIT}" in str(result.command)
    assert f'"revision":"{COMMIT}"' in result.model_dump_json().replace(" ", "")


def test_a_student_of_the_hub_is_pinned_and_one_that_is_not_there_is_refused(cache: Path) -> None:
    def with_student(student: str) -> Request:
        return replace(request("teacher"), recipes=("logits",), overrides=(), student=student)

    (plan,) = plan_all(with_student("acme/Tiny-BERT"))
    assert plan.pretrained is not None and plan.pretrained.origin.revision == COMMIT
    assert (
        f"student acme/Tiny-BERT: main is commit {COMMIT} now; give --student acme/Tiny-BERT@{COMMIT} to stay with it"
        in plan.notes
    )
    assert f"--student acme/Tiny-BERT@{COMMIT}" in command_line(with_student("acme/Tiny-BERT"), plan)
    Path("acme").mkdir()
    message = (
        "student acme/nope: no such folder in acme, and no such repository of the hub; give another with --student DIR"
    )
    with pytest.raises(CompressError, match=message):
        plan_all(with_student("acme/nope"))


def test_a_folder_of_that_name_wins_and_it_is_said(cache: Path) -> None:
    (hub,) = plan_all(request("acme/Tiny-BERT"))
    assert [note for note in hub.notes if "acme" in note] == [
        f"teacher acme/Tiny-BERT: main is commit {COMMIT} now; give --teacher acme/Tiny-BERT@{COMMIT} to stay with it"
    ]
    (pinned,) = plan_all(request(f"acme/Tiny-BERT@{COMMIT}"))
    assert not [note for note in pinned.notes if "acme" in note]
    Path("acme").mkdir()
    Path("teacher").rename("acme/Tiny-BERT")
    (here,) = plan_all(request("acme/Tiny-BERT"))
    assert here.teacher.origin.kind == "folder"
    assert here.notes[0] == (
        "teacher acme/Tiny-BERT: read from the folder of that name here, not from the hub; "
        "for the hub's repository give acme/Tiny-BERT@main"
    )
    assert here.nodes[0].key == hub.nodes[0].key
    assert plan_all(request("acme/Tiny-BERT@main"))[0].teacher.origin.kind == "hub"


@pytest.mark.parametrize("word", ["./nope", "nope/", "no/such/folder", "./acme/nope"])
def test_a_folder_that_is_not_there_is_told_without_the_hub(cache: Path, word: str) -> None:
    with pytest.raises(CompressError) as caught:
        plan_all(request(word))
    assert str(caught.value) == f"teacher {word}: no such folder; expected the folder of a transformers checkpoint"
    Path("file").write_text("")
    with pytest.raises(CompressError, match=r"^teacher \./file: a file; expected the folder"):
        plan_all(request("./file"))


def test_one_missing_in_a_folder_that_is_here_is_told_shortly(cache: Path) -> None:
    Path("acme").mkdir()
    with pytest.raises(CompressError) as caught:
        plan_all(request("acme/none"))
    assert str(caught.value) == (
        "teacher acme/none: no such folder in acme, and no such repository of the hub; give another with --teacher DIR"
    )
    assert plan_all(request("acme/Tiny-BERT"))[0].teacher.origin.kind == "hub"


def test_what_is_nowhere_is_told_with_both_places(cache: Path) -> None:
    with pytest.raises(CompressError, match=r"teacher acme/none: .* at main .*; no folder of that name is here"):
        plan_all(request("acme/none"))
