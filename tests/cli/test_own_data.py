"""A user's files instead of a task, and the task file that `init` writes for them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

import compress
from compress.pipeline.request import Request, command_line, own_words
from compress.tasks import OwnFiles, own_files

pytestmark = pytest.mark.end_to_end

Cli = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, rows in {"a": 60, "b": 12}.items():
        lines = [f"the {name} film {i} is {'good' if i % 2 else 'bad'},{i % 2 + 1}" for i in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["review,stars", *lines]) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


NOT_GIVEN = ("text", "pair", "label", "kind", "max_length")
FILES = ("--train", "a.csv", "--dev", "b.csv", "--text", "review", "--label", "stars")


def test_a_plan_of_ones_own_files_is_that_of_the_task_file_that_init_writes(cli: Cli, folder: Path) -> None:
    words = ("plan", "int8", "--teacher", "bert-mini", "--json")
    (own,) = json.loads(cli(*words, *FILES).out)
    done = cli("init", *FILES[:4])
    assert (done.code, done.out.splitlines()[0]) == (0, "a.yaml")
    assert "texts in `review`, labels in `stars`" in done.out
    (written,) = json.loads(cli(*words, "--task", "a.yaml").out)
    assert own == written
    assert own["task"] == "a"


@pytest.mark.parametrize("name", ["~$a.csv", "~root.csv", "~/a.csv"])
def test_a_name_may_begin_with_a_tilde(
    cli: Cli, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (folder / name).parent.mkdir(exist_ok=True)
    files = [(folder / name), (folder / name).with_suffix(".dev.csv")]
    for path, other in zip(files, ("a.csv", "b.csv"), strict=True):
        (folder / other).rename(path)
    words = ("plan", "int8", "--teacher", "bert-mini", "--json")
    plans = []
    for start in ("./", f"{folder}/"):
        names = [f"{start}{path.relative_to(folder)}" for path in files]
        options = ("--train", names[0], "--dev", names[1], "--text", "review", "--label", "stars")
        done = cli(*words, *options)
        assert done.code == 0, done.err
        plans += json.loads(done.out)
        assert cli("init", *options, "-o", f"{start}~task.yaml").code == 0
        done = cli(*words, "--task", f"{start}~task.yaml")
        assert done.code == 0, done.err
        plans += json.loads(done.out)
        (folder / "~task.yaml").unlink()
    assert all(plan["stages"] == plans[0]["stages"] for plan in plans)
    own = own_files(train=f"./{files[0].relative_to(folder)}", dev=files[1], **dict.fromkeys(NOT_GIVEN))
    assert own is not None
    assert own_words(own)[1] == f"./{files[0].relative_to(folder)}"


def test_a_forgotten_pair_is_one_note_of_plan_and_run(
    cli: Cli, folder: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    encoder_world(folder, tiny_checkpoint("bert"), toy_tokenizer, text="")
    for name in ("a", "b"):
        head, *rows = (folder / f"{name}.csv").read_text().splitlines()
        lines = [f"and the answer to it is {i},{row}" for i, row in enumerate(rows)]
        (folder / f"{name}.csv").write_text("\n".join([f"answer,{head}", *lines]))
    note = "a.csv: the texts in column 'answer' are not read; if they belong to those in 'review', give --pair answer"
    words = ("int8", "--teacher", "./teacher", "--set", "finetune.max_steps=1", "--max-length", "16", *FILES)
    (plan,) = json.loads(cli("plan", *words, "--json").out)
    assert [note in line for line in plan["notes"]].count(True) == 1
    (pair,) = json.loads(cli("plan", *words, "--pair", "answer", "--json").out)
    assert not any("are not read" in line for line in pair["notes"])
    out = folder.parent / f"the runs of {folder.name}"  # not below this folder
    done = cli("run", *words, "--no-bench", "--set", "quantize.method=dynamic", "--threads", "1", "--out", out)
    assert (done.code, done.err.count(note)) == (0, 1)
    (ship,) = (shlex.split(line)[2:] for line in done.out.splitlines() if line.startswith("ship:"))
    assert cli(*ship).code == 0  # as printed
    assert (folder / ship[-1] / "onnx" / "model_quantized.onnx").is_file()


def test_init_says_what_comes_next_as_a_shell_takes_it(cli: Cli, folder: Path) -> None:
    done = cli("init", *FILES, "-o", "my task.yaml")
    line = next(line for line in done.out.splitlines() if "; now: " in line)
    assert shlex.split(line.partition("; now: ")[2])[-2:] == ["--task", "my task.yaml"]


def test_init_says_what_it_leaves_out(cli: Cli, folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        head, *rows = (folder / name).read_text().splitlines()
        (folder / name).write_text("\n".join([f"{head},second", *(f"{row},{n}" for n, row in enumerate(rows))]))
    done = cli("init", *FILES)
    assert (done.code, done.err) == (0, "")
    assert "not used: `second`; name a second text with --pair" in done.out


def test_init_says_that_columns_of_0_and_1_are_labels_together(cli: Cli, folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        rows = ["text,vip,urgent", *(f"please look at this {n},{n % 2},{n // 2 % 2}" for n in range(20))]
        (folder / name).write_text("\n".join(rows))
    said = "a text may have any of these labels, since all are columns of 0 and 1; if one holds the labels, name it with --label"
    assert said in cli("init", *FILES[:4], "-o", "all.yaml").out
    assert said not in cli("init", *FILES[:4], "--label", "vip", "-o", "one.yaml").out


def test_init_replaces_nothing_and_writes_nothing_where_it_fails(cli: Cli, folder: Path) -> None:
    (folder / "mine.yaml").write_text("mine")
    done = cli("init", *FILES, "-o", "mine.yaml")
    assert (done.code, done.err) == (2, "error: mine.yaml: exists already; choose another name with --out\n")
    assert (folder / "mine.yaml").read_text() == "mine"
    before = set(folder.iterdir())
    for words in (("--text", "none"), ("-o", "a.txt"), ("-o", "none/a.yaml")):
        assert cli("init", *FILES, *words).code == 2
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "expected --task NAME"),
        (
            (*FILES, "--task", "sst2"),
            "--train names data, and --task sst2 has data of its own; leave one of the two out",
        ),
        (FILES[:2], "--dev: expected a file of labelled examples"),
        ((*FILES, "--label", "strs"), "a.csv: no column 'strs'; did you mean `stars`?"),
        ((*FILES, "--data-dir", "."), "--data-dir names data, and no task here reads it"),
        ((*FILES, "--text="), "--text: expected a value, found an empty one"),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_what_is_wrong_is_one_line_before_any_work(
    cli: Cli, folder: Path, command: str, words: tuple[str, ...], expected: str
) -> None:
    done = cli(command, "int8", "--teacher", "bert-mini", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert expected in done.err
    assert not (folder / "runs").exists()


def test_a_run_of_ones_own_files_can_be_repeated_by_its_command(
    folder: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    encoder_world(folder, tiny_checkpoint("bert"), toy_tokenizer, text="")
    options: Any = {"teacher": "./teacher", "overrides": ["finetune.max_steps=1"], "bench": None, "max_length": 16}
    (result,) = compress.run("int8", train="a.csv", dev="b.csv", text="review", label="stars", **options)
    assert (result.task.name, result.task.labels) == ("a", ("1", "2"))
    assert result.command is not None
    assert shlex.join(FILES) in result.command
    assert "--max-length 16" in result.command
    assert str(folder) not in (folder / "runs" / result.run / "result.json").read_text()


def test_a_command_names_no_place(folder: Path) -> None:
    own = OwnFiles(folder / "a.csv", Path("b.csv"), "review", label="stars")
    request = Request(("int8",), own=own, teacher="bert-mini")
    from compress.pipeline import plan_all

    (plan,) = plan_all(request)
    assert command_line(request, plan) == f"compress run int8 {shlex.join(FILES)} --teacher bert-mini"
