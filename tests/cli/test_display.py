"""Progress on stderr: occasional plain lines without a terminal, one live line in a terminal, nothing with quiet."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from compress.cli import display, screen
from compress.cli.display import Display
from compress.training import StepReport


def step(number: int) -> StepReport:
    return StepReport(
        step=number,
        total=20,
        epoch=number / 10,
        losses={"hard_label": 0.5},
        learning_rate=1e-3,
        tokens=200,
        examples=8,
        seconds=0.1,
    )


@pytest.fixture
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "_PLAIN_EVERY_SECONDS", -1.0)


@pytest.mark.usefixtures("every_line")
def test_stages_with_and_without_steps_are_told_in_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with Display() as shown:
        shown.stage("tokenize text", False)
        shown.progress("tokens", 0, None)
        shown.progress("tokens", 4194304, None)
        shown.stage("augment augmented", False)
        shown.progress("words", 1536, 20480)
        shown.stage("distill student", False)
        shown.step(step(3))
    assert capsys.readouterr() == (
        "",
        "run     tokenize text\n"
        "        tokens: 4,194,304\n"
        "run     augment augmented\n"
        "        words: 1,536 of 20,480\n"
        "run     distill student\n"
        "        step 3/20  0:02 left  80 examples/s  2,000 tokens/s  hard_label 0.5000\n",
    )


def test_plain_lines_come_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100, 1000, 10))
    monkeypatch.setattr(display.time, "monotonic", lambda: next(clock))
    with Display() as shown:
        for done in range(20):
            shown.progress("words", done, 20)
    lines = capsys.readouterr().err.splitlines()
    assert 2 < len(lines) < 10
    assert lines[0].strip() == "words: 0 of 20"


@pytest.mark.usefixtures("every_line")
def test_quiet_means_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(quiet=True) as shown:
        shown.stage("augment augmented", False)
        shown.progress("words", 1, 2)
        shown.step(step(1))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("total", [20480, None])
def test_on_a_terminal_one_live_line_counts(monkeypatch: pytest.MonkeyPatch, total: int | None) -> None:
    screen = Console(force_terminal=True, width=120, record=True)
    monkeypatch.setattr(display, "console", lambda stderr: screen)
    with Display() as shown:
        shown.stage("augment augmented", False)
        shown.progress("words", 1536, total)
        assert shown._live.tasks[0].completed == 1536
        screen.print(shown._live.get_renderable())
        shown.stage("distill student", False)
        assert not shown._live.tasks
        shown.step(step(3))
        screen.print(shown._live.get_renderable())
    text = screen.export_text()
    assert ("1,536 of 20,480" if total else "1,536") in text
    assert "3/20" in text


def test_the_live_bar_of_a_second_pass_has_its_own_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "console", lambda stderr: Console(force_terminal=True, width=120))
    with Display() as shown:
        shown.stage("prune student", False)
        for what, total in (("judging by examples", 2048), ("repairing layers", 4)):
            shown.progress(what, total // 2, total)
            assert shown._live.tasks[0].percentage == 50


@pytest.mark.parametrize(("width", "shown_losses"), [(80, False), (160, True)])
def test_step_total_and_time_left_are_there_at_any_width(
    monkeypatch: pytest.MonkeyPatch, width: int, shown_losses: bool
) -> None:
    """Only the losses are dropped if they do not fit."""
    screen = Console(force_terminal=True, width=width, record=True)
    monkeypatch.setattr(display, "console", lambda stderr: screen)
    with Display() as shown:
        shown.stage("distill intermediate", False)
        report = replace(
            step(3), total=123456, losses=dict.fromkeys(("embedding_mse", "hidden_mse", "attention_mse"), 0.5)
        )
        shown.step(report)
        screen.print(shown._live.get_renderable())
    line = next(line for line in screen.export_text().splitlines() if "step 3" in line)
    assert "step 3/123456" in line
    assert "3 h 25 min left" in line
    assert "80 examples/s" in line
    assert ("attention_mse" in line) is shown_losses


@pytest.mark.parametrize(
    ("seconds", "said"), [(5.4, "0:05"), (125, "2:05"), (99 * 60 + 59, "99:59"), (60_136, "16 h 42 min")]
)
def test_long_times_are_said_in_hours(seconds: float, said: str) -> None:
    assert display.duration(seconds) == said


def test_the_last_plain_line_of_a_count_is_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """It is shown immediately and once, if an earlier one was shown."""
    with Display() as shown:
        for done in (0, 1, 2, 2):
            shown.progress("shapes timed" if done == 2 else "1 x 32", done, 2)
    assert capsys.readouterr().err == "        1 x 32: 0 of 2\n        shapes timed: 2 of 2\n"


def test_each_of_several_runs_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Display() as shown:
        shown.run("distilbert-x-seed0-abc123", 2, 12)
    assert capsys.readouterr().err == "2 of 12  distilbert-x-seed0-abc123\n"


def test_brackets_and_colons_of_paths_and_labels_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    words = "./my[old]bert [/tmp] [bold] :smile: [/INST]"
    with Display() as shown:
        shown.run(words, 1, 1)
        shown.stage(words, False)
        shown.stage(words, True)
        shown.built_elsewhere(words, words)
        shown.notice(words)
        shown.outlook(words)
        shown.progress(words, 1, 1)
    table = Table("model")
    table.add_row(words)
    screen.console().print(table)
    out, err = capsys.readouterr()
    assert [line.count(words) for line in err.splitlines()] == [1, 1, 1, 2, 1, 1, 1]
    assert words in out


def test_tables_can_be_printed_in_an_encoding_that_lacks_their_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    screen.print_in_any_encoding()
    print("−12.30 (−15.00 to +9.40) – 5.8× é 木")
    stream.flush()
    assert stream.buffer.getvalue().decode("latin-1") == "-12.30 (-15.00 to +9.40) - 5.8× é \\u6728\n"  # type: ignore[attr-defined]


def test_json_is_whole_in_an_encoding_that_lacks_some_of_its_characters(tmp_path: Path) -> None:
    folder = tmp_path / "“a” − \N{GRINNING FACE} é"
    folder.mkdir()
    (folder / "bundle.json").write_text("{}")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "compress", "verify", str(folder), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True)
    assert json.loads(done.stdout.decode("latin-1"))["bundle"] == str(folder)


def test_a_command_and_its_help_where_stdout_takes_ascii_alone(tmp_path: Path) -> None:
    command, words = [sys.executable, "-m", "compress"], {"capture_output": True, "text": True, "cwd": tmp_path}
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([*command, "list", "teachers"], env=environment, **words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "BERT, 4 layers x 128, from random weights" in done.stdout
    done = subprocess.run([*command, "predict", "-h"], env=environment, **words)
    assert (done.returncode, done.stderr) == (0, "")
