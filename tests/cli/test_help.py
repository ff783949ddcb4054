"""Help with examples, and lists that never truncate what a user must type."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
import typer.main
from rich.console import Console

from compress.catalog import names
from compress.cli import _EXAMPLES, app
from compress.cli.completion import TASKS
from compress.cli.info import _cards, _table
from compress.files.paths import unambiguous_path
from compress.tasks import BUILTIN_TASKS

ROOT = Path(__file__).parents[2]
COMMAND: Any = typer.main.get_command(app)


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("kind", ["recipes", "teachers", "students"])
def test_a_name_is_never_cut(kind: Any, width: int) -> None:
    stream = io.StringIO()
    Console(file=stream, width=width).print(_table(_cards(kind)))
    assert {line.split()[0] for line in stream.getvalue().splitlines() if line[:1].strip()} >= set(names(kind))


@pytest.mark.parametrize("function", _EXAMPLES, ids=lambda function: function.__name__)
def test_examples_are_commands_that_are_read(function: Any) -> None:
    command = COMMAND.commands[function.__name__]
    for line in _EXAMPLES[function]:
        assert line in command.epilog
        program, name, *words = shlex.split(line)
        assert (program, name) == ("compress", command.name)
        command.make_context(name, words)


def test_every_command_but_lists_has_examples() -> None:
    assert {name for name, command in COMMAND.commands.items() if not command.epilog} == {"list", "doctor"}


def test_options_of_a_run_are_in_groups() -> None:
    panels = {
        parameter.rich_help_panel
        for parameter in COMMAND.commands["run"].params
        if hasattr(parameter, "rich_help_panel")
    }
    assert panels >= {"Your own files, in place of a task", "Models and stages", "Seeds", "Machine", "Output"}


def test_plan_takes_the_place_of_run_in_any_command() -> None:
    options = {name: [each.opts for each in COMMAND.commands[name].params] for name in ("run", "plan")}
    assert options["plan"] == options["run"]


def test_a_leading_tilde_is_expanded_in_every_path() -> None:
    commands: list[Any] = [command.callback for command in app.registered_commands]
    hints = {function.__name__: typing.get_type_hints(function, include_extras=True) for function in commands}
    paths = {
        (command, name): hint.__metadata__[0].parser
        for command, parameters in hints.items()
        for name, hint in parameters.items()
        if "Path" in str(getattr(hint, "__origin__", ""))
    }
    assert {("run", "out"), ("predict", "bundle"), ("ship", "triton"), ("report", "runs")} <= paths.keys()
    assert [place for place, parser in paths.items() if parser is not unambiguous_path] == []


def completed(words: str) -> list[str]:
    """Return what bash is offered for the last of `words`. Checks that no card is read for it, nor a large library imported."""
    count = len(words.split()) - (not words.endswith(" "))
    environment = {**os.environ, "_COMPRESS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    slow = "print(*sorted({'compress.catalog', 'compress.tasks', 'numpy', 'torch', 'yaml'} & sys.modules.keys()), file=sys.stderr)"
    program = f"import atexit, sys; sys.argv = ['compress']; atexit.register(lambda: {slow}); from compress.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stderr.strip() == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("compress run int8 distilbert-", ["distilbert-general", "distilbert-int8-qat"]),
        ("compress ablate tinybert-s", ["tinybert-small"]),
        ("compress run int8 --task toy-s", ["toy-sentiment", "toy-similarity"]),
        ("compress verify b --task qq", ["qqp"]),
        ("compress bench b --task qq", ["qqp"]),
        ("compress search int8 --teacher bert-mini-", ["bert-mini-256"]),
        ("compress run logits --student distil-1", ["distil-1l"]),
        ("compress run int8 --teacher ./", []),  # the shell then completes paths
    ],
)
def test_a_shell_completes_names(words: str, offered: list[str]) -> None:
    assert completed(words) == offered


def test_a_shell_completes_the_tasks_that_there_are() -> None:
    assert list(TASKS) == sorted(BUILTIN_TASKS)


def test_a_shell_completes_commands() -> None:
    assert completed("compress pl") == ["plan"]
    assert (
        "--install-completion"
        in subprocess.run(
            [sys.executable, "-m", "compress", "-h"],
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        ).stdout
    )


def test_no_hint_names_a_package_that_is_not_published() -> None:
    paths = [
        path
        for path in (ROOT / "compress").rglob("*.py")
        if re.search(r"pip install [^`]*bert-compress", path.read_text())
    ]
    assert paths == []
