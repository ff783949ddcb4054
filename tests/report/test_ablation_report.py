"""The page of an ablation and the files beside it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from ablation_rows import DROPS, Rows, ablated, toy_rows
from guessing_teachers import guessing, on_mrpc
from rich.console import Console

from compress.errors import CompressError
from compress.report.ablation import (
    ablation_document,
    ablation_of,
    ablation_table,
    guesses,
    write_ablation,
)
from compress.report.ablation.page import page_of
from compress.results import PER_EXAMPLE, Result

NASTY = "<script>alert(1)</script>|*"


@pytest.fixture
def make_rows(fake: Callable[..., Result], run_directory: Callable[..., Result]) -> Callable[..., Rows]:
    return partial(toy_rows, fake, run_directory)


def test_the_folder_keeps_the_answers_that_its_intervals_are_of(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    rows, out = make_rows(("one", "two")), tmp_path / "out"
    assert out / PER_EXAMPLE in write_ablation(ablated(rows, tmp_path), out)
    shutil.rmtree(tmp_path / "runs")
    again = ablation_of(rows, title="Mine", command="compress ablate tinybert", folders=[out])
    assert json.loads(json.dumps(ablation_document(again))) == json.loads((out / "ablation.json").read_text())


@pytest.fixture
def written(make_rows: Callable[..., Rows], tmp_path: Path) -> Path:
    out = tmp_path / "report"
    paths = write_ablation(ablated(make_rows(("one", "two")), tmp_path), out)
    assert [path.name for path in paths] == [f"ablation.{kind}" for kind in ("md", "html", "svg", "json")] + [
        PER_EXAMPLE
    ]
    return out


@pytest.mark.parametrize("name", ["ablation.md", "ablation.html"])
def test_a_reader_finds_every_row_and_how_it_was_made(written: Path, name: str) -> None:
    text = (written / name).read_text(encoding="utf-8")
    plain = re.sub(r"<svg.*?</svg>|aria-label=\"[^\"]*\"", "", text, flags=re.DOTALL)
    for wanted in (
        *DROPS,
        "not distinguishable",
        "75.60",
        "−7.20",
        "ONE",
        "Mean of the tasks",
        "3 seeds",
        "the general stage keeps its own",
        "so that the student is trained as long",
        "compress ablate tinybert",
        "onnxruntime 1.31.0",
        "without-augment-two-seed2",
        "Direction against the published ablation",
    ):
        assert wanted in plain, wanted


def test_the_page_fetches_nothing_and_runs_its_own_script_alone(written: Path) -> None:
    page = (written / "ablation.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1
    assert "<link" not in page
    assert re.search(
        r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[\w+/=]+'; img-src data:", page
    )
    assert not re.search(r"(?:href|src)=\"(?:https?:)?//", page)
    assert page.count("<caption>") == page.count("<table>") == 2


def test_the_picture_shows_every_row(written: Path) -> None:
    root = ElementTree.parse(written / "ablation.svg").getroot()
    words = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {label for label in DROPS if label != "full"} <= words


def test_the_data_beside_the_page(written: Path) -> None:
    document = json.loads((written / "ablation.json").read_text(encoding="utf-8"))
    assert (document["seeds"], [*document["tasks"]]) == ([0, 1, 2], ["one", "two"])
    full, augment, *_ = document["rows"]
    assert (full["label"], full["mean"]["difference"], full["direction"]) == ("full", None, None)
    assert (augment["published_difference"], augment["direction"]) == (-7.2, "agrees")
    assert len(augment["runs"]) == 6
    gap = augment["tasks"]["one"]["mean"] - full["tasks"]["one"]["mean"]
    assert augment["tasks"]["one"]["difference"]["points"] == pytest.approx(gap)


def test_the_same_runs_give_the_same_bytes(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    rows = make_rows(seeds=1)
    first, second = (write_ablation(ablated(rows, tmp_path), tmp_path / name) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_one_seed_is_said_before_any_number(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    ablation = ablated(make_rows(seeds=1), tmp_path)
    assert any("not that of training again" in warning for warning in page_of(ablation).warnings)
    assert "Mean of the tasks" not in {column.text for column in page_of(ablation).table.columns}


def test_a_teacher_that_only_guesses_is_named_before_any_number(
    fake: Callable[..., Result], make_rows: Callable[..., Rows], tmp_path: Path
) -> None:
    def guessed(label: str) -> Result:
        plain = on_mrpc(fake, run=f"guessed-{label.replace(' ', '-')}")
        recipe = {"name": "mine", "paper": None, "stages": [{"finetune": {}}]}
        fields = {"models": plain.models[:2], "recipe": recipe}
        return guessing(plain.model_copy(update=fields), tmp_path / "runs" / plain.run)

    usual = {label: runs for label, runs in make_rows(seeds=1).items() if label in ("full", "without augment")}
    alone = {label: [guessed(label)] for label in usual}
    reason = "the teacher has 50.00{}, no more than the same answer for every text, 75.00"
    expected = f"MRPC: {reason.format('')}, so there is nothing to compress; train it longer"
    assert any(line.startswith(expected) for line in page_of(ablated(alone, tmp_path)).warnings)
    assert guesses(ablated(usual, tmp_path)) == []
    both = ablated({label: [*runs, *alone[label]] for label, runs in usual.items()}, tmp_path)
    expected = f"MRPC counts in means over tasks all the same: {reason.format(' there')}."
    assert guesses(both) == [expected] and expected in page_of(both).warnings


def test_the_terminal_shows_differences_below_scores(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    console = Console(width=100, record=True, force_terminal=False)
    console.print(ablation_table(ablated(make_rows(("one", "two"), seeds=1), tmp_path)))
    text = console.export_text()
    lines = [line.split() for line in text.splitlines()]
    place = next(number for number, line in enumerate(lines) if line[:2] == ["without", "hidden_mse"])
    assert lines[place + 1] == ["≈", "0.00", "≈", "0.00", "0.00", "(−0.50", "to", "+0.50)"]
    assert lines[place + 2] == ["not", "distinguishable"]
    assert "≈ not distinguishable from the full recipe" in text


def test_names_with_markup_stay_text(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    rows = {label + (NASTY if label != "full" else ""): runs for label, runs in make_rows(seeds=1).items()}
    out = tmp_path / "report"
    write_ablation(ablated(rows, tmp_path, title=NASTY), out)
    assert (out / "ablation.html").read_text(encoding="utf-8").count("<script>") == 1
    assert "<script>" not in (out / "ablation.md").read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written_is_named(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CompressError, match=r"file: cannot be written: .*; choose another with --report"):
        write_ablation(ablated(make_rows(seeds=1), tmp_path), tmp_path / "file")


def test_it_imports_no_torch() -> None:
    code = (
        "import sys; import compress.report.ablation;"
        "print([m for m in ('torch', 'transformers', 'altair', 'pandas', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
