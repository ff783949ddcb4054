"""For a kind whose labels are numbers, `init` takes a column of numbers; it reads no texts from nested fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compress.spec.kinds import KindName
from compress.tasks import OwnFiles
from compress.tasks.own.template import guess_columns, task_yaml


def files_of(folder: Path, rows: list[dict[str, Any]]) -> tuple[Path, Path]:
    for name in ("train", "dev"):
        lines = (
            json.dumps({key: f"{value} {name}" if key == "a" else value for key, value in row.items()}) for row in rows
        )
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return folder / "train.jsonl", folder / "dev.jsonl"


def scored(i: int) -> dict[str, Any]:
    """A pair with scores in a column whose name is not a usual one."""
    return {"a": f"one text {i}", "b": f"another text {i % 7}", "human": i / 8, "row": i, "annotator": "xyz"[i % 3]}


CASES: list[tuple[KindName, dict[str, Any], str]] = [
    ("regression", {}, "human"),
    ("embedding", {}, "human"),
    ("regression", {"label": "neutral"}, "human"),  # a usual name, but no scores
    ("regression", {"score": 3}, "human"),  # always the same
    ("regression", {"human": "one of many"}, "row"),
    ("ranking", {"grade": 2}, "grade"),
]


@pytest.mark.parametrize(("kind", "fields", "label"), CASES)
def test_scores_are_numbers(kind: KindName, fields: dict[str, Any], label: str, tmp_path: Path) -> None:
    rows = [scored(i) | fields for i in range(40)]
    if kind == "ranking":
        rows = [row | {"a": f"query {i // 4}", "grade": i % 3} for i, row in enumerate(rows)]
    own = guess_columns(OwnFiles(*files_of(tmp_path, rows), "a", "b", kind=kind), ["text", "pair"])
    assert own.label == label
    assert f"\nlabel: {label} " in task_yaml(own, tmp_path / "task.yaml")[0]


def test_pairs_without_a_score_may_be_among_them(tmp_path: Path) -> None:
    rows = [scored(i) | ({"human": None} if i > 30 else {}) for i in range(40)]
    own = OwnFiles(*files_of(tmp_path, rows), "a", "b", kind="embedding")
    assert guess_columns(own, ["text", "pair"]).label == "human"


def test_relevances_may_be_true_and_false(tmp_path: Path) -> None:
    rows = [scored(i) | {"a": f"query {i // 4}", "right": i % 4 == 0, "bm25": i / 7} for i in range(40)]
    own = OwnFiles(*files_of(tmp_path, rows), "a", "b", kind="ranking")
    assert guess_columns(own, ["text", "pair"]).label == "right"


def test_a_nested_field_with_a_usual_name_is_no_text(tmp_path: Path) -> None:
    rows = [{"review": {"by": "me"}, "a": f"what somebody wrote {i}", "stars": i / 8} for i in range(40)]
    own = guess_columns(OwnFiles(*files_of(tmp_path, rows)), [])
    assert (own.text, own.label) == ("a", "stars")
