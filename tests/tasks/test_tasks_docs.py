"""Every YAML example of docs/tasks.md, and of the pages on sets of pairs, is a valid task and reads data in the described format."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from whole import load_task

from compress.spec.task import TaskSpec
from compress.tasks import resolve_task

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tasks.md").read_text(encoding="utf-8")
SETS = (DOCS / "kinds" / "embedding.md").read_text(encoding="utf-8").split("### Several sets")[1].split("\n### ")[0]
EXAMPLES = {
    match.group(1): match.group(0)
    for match in re.finditer(r"^name: (\S+)\n(?:(?!```).+\n)+", PAGE + SETS, re.MULTILINE)
}


STS_SETS = {
    name.replace("/", "-"): f"{name}.test"
    for name in (
        "2012/MSRpar",
        "2012/OnWN",
        "2013/headlines",
        "2014/images",
        "2015/belief",
        "2016/plagiarism",
    )
}


def reviews(folder: Path) -> None:
    for split in ("train", "dev"):
        rows = "".join(f'"{split} review, {i}",{("bad", "good")[i % 2]}\n' for i in range(20))
        (folder / f"{split}.csv").write_text("review,stars\n" + rows)


def questions(folder: Path) -> None:
    for split in ("train", "forum", "support"):
        rows = "".join(f'{i}\t"{split} {i}\twhat {i}\t{("no", "yes")[i % 2]}\n' for i in range(20))
        (folder / f"{split}.tsv").write_text(rows)


def sts(folder: Path) -> None:
    for name in ("train", *STS_SETS.values()):
        (folder / f"{name}.tsv").parent.mkdir(exist_ok=True)
        (folder / f"{name}.tsv").write_text("".join(f"{i % 5}.0\t{name} {i}\tother {name} {i}\n" for i in range(20)))


def paws(folder: Path) -> None:
    """Write the data set as its hub repository, into a folder with the same path."""
    name = "labeled_final"
    root = folder / "google-research-datasets" / "paws"
    (root / name).mkdir(parents=True)
    parts = [f"  - {{split: {split}, path: {name}/{split}.jsonl}}\n" for split in ("train", "validation")]
    (root / "README.md").write_text(f"---\nconfigs:\n- config_name: {name}\n  data_files:\n{''.join(parts)}---\n")
    for split in ("train", "validation"):
        rows = [{"sentence1": f"{split} {i}", "sentence2": "b", "label": i % 2} for i in range(20)]
        (root / name / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))


WRITERS: dict[str, Callable[[Path], None]] = {writer.__name__: writer for writer in (reviews, questions, sts, paws)}


def test_every_yaml_block_is_an_example_here() -> None:
    assert set(EXAMPLES) == set(WRITERS)
    assert len(EXAMPLES) == (PAGE + SETS).count("```yaml")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_loads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / f"{name}.yaml").write_text(EXAMPLES[name], encoding="utf-8")
    WRITERS[name](tmp_path)
    data = load_task(*resolve_task(str(tmp_path / f"{name}.yaml")), None)
    assert len(data.train) + len(data.tuning) == 20
    expected: dict[str, Any] = {"questions": ["forum", "support"], "sts": list(STS_SETS)}
    assert list(data.reported) == expected.get(name, ["dev"])
    assert data.spec.name == name


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_program_that_splits_a_file(delimiter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a mark at the start and quotes around all fields, as spreadsheets and pandas write them."""
    monkeypatch.chdir(tmp_path)
    rows = [[f"text {i},\nwith; a second line", "None" if i % 2 else "1.0"] for i in range(25)]
    with Path("all.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([["text", "label"], *rows])
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    setting = 'delimiter = ","  #'
    assert program.count(setting) == 1
    exec(program.replace(setting, f"delimiter = {delimiter!r}  #"), {})
    parts = {}
    for name in ("train", "dev"):
        with Path(f"{name}.csv").open(encoding="utf-8", newline="") as file:
            header, *parts[name] = csv.reader(file, delimiter=delimiter)
            assert header == ["text", "label"]
    assert len(parts["dev"]) == 2 and sorted(parts["train"] + parts["dev"]) == sorted(rows)


def test_defaults_that_the_page_states() -> None:
    defaults = {
        name: TaskSpec.model_fields[name].default for name in ("tuning_fraction", "tuning_examples", "max_length")
    }
    stated = {name: re.search(rf"`{name}`[^(]*\(([\d.]+)\)", PAGE) for name in defaults}
    assert {name: float(match.group(1)) for name, match in stated.items() if match} == defaults
