"""Wrong input: one clear line with the file and field, exit code 2, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names

RECIPE = "name: mine\ntitle: Mine\nteacher: bert-mini\nstages:\n  - finetune:\n      {field}\n  - export:\n"


def run(cli: Cli, tmp_path: Path, *arguments: object) -> str:
    """Return the message of a failing `run`, after checking that it wrote nothing."""
    out = tmp_path / "runs"
    code, printed, error = cli("run", *arguments, "--out", out)
    assert code == 2
    assert printed == ""
    assert "Traceback" not in error
    assert not out.exists()
    return error


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("epoch: 3", "mine.yaml:6: stages[0].finetune.epoch: unknown key; did you mean `epochs`?"),
        (
            "learning_rate: '1e-4'",
            "mine.yaml:6: stages[0].finetune.learning_rate: expected a number, found the text '1e-4'",
        ),
        ("batch_size: 0", "mine.yaml:6: stages[0].finetune.batch_size:"),
        ("learning_rate: .nan", "mine.yaml:6: stages[0].finetune.learning_rate:"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(cli: Cli, tmp_path: Path, field: str, expected: str) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(RECIPE.format(field=field), encoding="utf-8")
    assert expected in run(cli, tmp_path, recipe, "--task", "toy-sentiment")


def test_all_mistakes_come_at_once(cli: Cli, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(RECIPE.format(field="epoch: 3\n      batch_size: many"), encoding="utf-8")
    error = run(cli, tmp_path, recipe, "--task", "toy-sentiment")
    assert error.count("error: ") == 2
    assert "mine.yaml:6:" in error
    assert "mine.yaml:7:" in error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["distilbart", "--task", "sst2"], "did you mean `distilbert`?"),
        (["distilbert", "--task", "sst3"], "did you mean `sst2`?"),
        (["distilbert", "--task", "toy-sentiment", "--teacher", "bert-bas"], "did you mean `bert-base`?"),
        (
            ["distilbert", "--task", "toy-sentiment", "--teacher", "bert-mini", "--student", "distil-1"],
            "did you mean `distil-1l`?",
        ),
        (["int8", "--task", "toy-sentiment", "--teacher", "bert-mini", "--student", "distil-1l"], "makes no student"),
        (
            ["distilbert", "--task", "toy-sentiment", "--teacher", "bert-mini", "--student", "distilbert-6l"],
            "6 layers and the teacher 4",
        ),
        (["distilbert", "--task", "toy-sentiment", "--teacher", "bert-mini", "--set", "distill.epoch=3"], "--set"),
        (
            ["distilbert", "--task", "toy-sentiment", "--teacher", "bert-mini", "--set", "finetune.max_length=4096"],
            "128 positions",
        ),
        (
            ["distilbert", "--task", "toy-sentiment", "--teacher", "bert-mini", "--precision", "fp8"],
            "--precision: expected fp32, bf16 or auto",
        ),
        (
            ["distilbert", "--task", "sst2", "--teacher", "bert-mini", "--data-dir", "no/such"],
            "no/such: no such folder",
        ),
        (["distilbert", "--task", "toy-sentiment", "--teacher", "./no-such-folder"], "no-such-folder"),
        (
            ["distilbert", "int8", "--task", "toy-sentiment", "--teacher", "bert-mini", "--corpus", "text.txt"],
            "--corpus names plain text, and no stage of distilbert, int8 reads any; leave it out",
        ),
        (["no/such.yaml", "--task", "toy-sentiment"], "no/such.yaml"),
        (
            ["int8", "--task", "toy-sentiment", "--teacher", "bert-mini", "--set", "teacher=minilm-l6"],
            "--set teacher=minilm-l6: --teacher gives it too; leave one of the two out",
        ),
        (
            ["int8", "--task", "toy-sentiment", "--teacher", "bert-mini", "--set", "teacher.epochs=2"],
            "--set teacher.epochs: a teacher is a card, a folder or a hub repository, without fields here; its training is the stage "
            "`finetune`: set finetune.epochs",
        ),
        (
            ["int8", "--task", "toy-sentiment", "--set", "teacher.layers=2"],
            "--set teacher.layers: a teacher is a card, a folder or a hub repository, without fields here\n",
        ),
        (
            ["int8", "--task", "toy-sentiment", "--precision", "bf16", "--set", "precision=fp32"],
            "--set precision=fp32: --precision gives it too",
        ),
    ],
)
def test_what_does_not_exist_or_fit_is_named(cli: Cli, tmp_path: Path, arguments: list[str], expected: str) -> None:
    assert expected in run(cli, tmp_path, *arguments)


def test_a_missing_data_file_is_named(cli: Cli, tmp_path: Path, task_file: Path) -> None:
    (tmp_path / "dev.csv").unlink()
    assert "dev.csv" in run(cli, tmp_path, "distilbert", "--task", task_file, "--teacher", "bert-mini")


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_plain_text_without_text_is_named(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    arguments = ("tinybert-small", "--task", "toy-sentiment", "--teacher", "bert-mini")
    assert "text.txt: holds no text" in run(cli, tmp_path, *arguments, "--corpus", tmp_path / "text.txt")


def test_an_output_that_cannot_be_written_is_named(cli: Cli, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    code, _, error = cli("run", "int8", "--task", "toy-sentiment", "--teacher", "bert-mini", "--out", blocked)
    assert code == 2
    assert f"error: {blocked}" in error
    assert blocked.read_text(encoding="utf-8") == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "distilbert"],
        ["run", "--task", "sst2"],
        ["run", "distilbert", "--task", "sst2", "--seeds", "0"],
        ["frobnicate"],
        ["list", "nothing"],
        ["report", "no/such/run", "-o", "x"],
        ["bench", "no/such.onnx"],
        ["ship", "no/such/run", "-o", "x"],
        ["verify", "no/such/bundle"],
        ["predict", "no/such/bundle", "text"],
    ],
)
def test_every_command_exits_2_without_a_traceback(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed, error = cli(*arguments)
    assert code == 2
    assert printed == ""
    assert error.strip()
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_a_bad_row_is_found_before_any_training(cli: Cli, tmp_path: Path, task_file: Path) -> None:
    with (tmp_path / "train.csv").open("a", encoding="utf-8") as file:
        file.write("one more film,maybe\n")
    error = run(cli, tmp_path, "distilbert", "--task", task_file, "--teacher", "bert-mini")
    assert "train.csv" in error
    assert "maybe" in error
    assert "42" in error


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ("[{name: hard_label, weight: 0}]", "at least one needs a weight above 0"),
        ("[{name: hard_label}, {name: hard_label}]", "each at most once"),
    ],
)
def test_losses_that_make_no_sense_cost_no_training(cli: Cli, tmp_path: Path, losses: str, expected: str) -> None:
    arguments = ("distilbert", "--task", "toy-sentiment", "--teacher", "bert-mini", "--set", f"distill.losses={losses}")
    assert expected in run(cli, tmp_path, *arguments)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("run", "int8", "--taskk", "sst2"), ("compress run", "--taskk", "--task", "compress run -h")),
        (("run", "int8"), ("--task NAME", "compress list tasks", "--train FILE")),
        (("run", "int8", "--task", "sst2", "--bench-runs", "x"), ("--bench-runs", "integer")),
        (("run", "int8", "--task", "sst2", "--no-bench", "--bench-runs", "500"), ("--bench-runs", "--no-bench")),
        (("plan", "int8", "--task", "sst2", "--no-bench", "--bench-threads", "7"), ("--bench-threads", "--no-bench")),
        (("plan", "int8", "--task", "sst2", "--no-bench", "--max-latency-ms", "3"), ("leave out --no-bench",)),
        (("runn",), ("'runn'", "'run'")),
        (("list",), ("recipes", "runs")),
        (("list", "recipe"), ("'kind': 'recipe' is not one of 'recipes'",)),
    ],
)
def test_a_wrong_option_is_one_line_too(cli: Cli, words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    done = cli(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert all(part in done.err for part in parts), done.err


def test_help_and_version_are_no_errors(cli: Cli) -> None:
    assert "Usage" in cli().out
    assert cli().err == ""
    assert cli("run", "-h").code == cli("--version").code == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("init", "--train"), "compress init: Option '--train' requires an argument; see `compress init -h`"),
        (("run", "int8", "--text"), "compress run: Option '--text' requires an argument; see `compress run -h`"),
        (("list", "--out"), "compress list: Option '--out' requires an argument; see `compress list -h`"),
        (("init", "--nothing"), "compress init: No such option: --nothing"),
        (("nothing", "--train"), "compress: No such command 'nothing'; see `compress -h`"),
    ],
)
def test_a_wrong_use_names_the_command(cli: Cli, words: tuple[str, ...], expected: str) -> None:
    done = cli(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"error: {expected}")
