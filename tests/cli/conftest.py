"""Fixtures that run the command line in this process, in a small folder."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hub_downloads import COMMIT, Endpoint, Repository, local_hub
from typer.main import get_command
from worlds import TASK

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


_get_command = cache(get_command)  # a process reads the signatures of all commands once, not for each test


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """Call `compress ARGS…` as `main` does; return its exit code, stdout and stderr."""
    from compress.cli import main

    monkeypatch.setattr("typer.main.get_command", _get_command)
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
    """A user's task: two CSV files and their YAML."""
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


HUB_TASK = """name: reviews
text: [text]
label: label
metrics: [accuracy]
max_length: 16
hub: {path: acme/reviews, revision: COMMIT, train: train, dev: validation}
"""


@pytest.fixture(scope="session")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a data set of 64 and 16 rows, as in a hub repository."""
    import datasets

    folder, files = tmp_path_factory.mktemp("parquet"), {"README.md": b"---\nlicense: mit\n---\n"}
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    for split, rows in (("train", 64), ("validation", 16)):
        texts = [f"the {split} film {i} is {'good' if i % 2 else 'bad'}" for i in range(rows)]
        labels = [i % 2 for i in range(rows)]
        path = folder / "one.parquet"
        datasets.Dataset.from_dict({"text": texts, "label": labels}, features=features).to_parquet(path)
        files[f"data/{split}-00000-of-00001.parquet"] = path.read_bytes()
    return files


@pytest.fixture
def hub(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tiny_checkpoint: Callable[[str], Path],
    toy_tokenizer: Tokenizer,
    parquet: dict[str, bytes],
) -> Iterator[Endpoint]:
    """A hub with `acme/tiny-bert` and `acme/reviews`, and a folder to run in with two tasks: `reviews.yaml` on the hub's data,
    `toy.yaml` embedded."""
    teacher = {path.name: path.read_bytes() for path in tiny_checkpoint("bert").iterdir()}
    config = json.loads(teacher["config.json"]) | {"architectures": ["BertModel"]}
    teacher |= {"config.json": json.dumps(config).encode(), "tokenizer.json": toy_tokenizer.to_str().encode()}
    monkeypatch.chdir(tmp_path)
    Path("reviews.yaml").write_text(HUB_TASK.replace("COMMIT", COMMIT))
    Path("toy.yaml").write_text(TASK)
    with local_hub(tmp_path, monkeypatch) as hub:
        hub.models["acme/tiny-bert"] = Repository({COMMIT: teacher})
        hub.datasets["acme/reviews"] = Repository({COMMIT: dict(parquet)})
        yield hub
