"""The command line in this process, and a small world to run it in."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """Call `compress ARGS…` as `main` does, with its exit code, stdout and stderr."""
    from compress.cli import main

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["compress", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    yield call
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    """A task of one's own: two CSV files and the YAML that names them."""
    for name, rows in {"train": 40, "dev": 12}.items():
        lines = [f"the {name} film {i} is {'good' if i % 2 else 'bad'},{'yes' if i % 2 else 'no'}" for i in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\ntext: [text]\nlabel: label\nlabels: ['no', 'yes']\nmetrics: [accuracy]\nmax_length: 16\n"
        "tuning_fraction: 0.25\nfiles: {train: train.csv, dev: dev.csv}\n",
        encoding="utf-8",
    )
    return path
