"""`compress.run` and `compress.plan` explain errors in their arguments."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from recipe_runs import TASK

import compress
from compress import Options
from compress.errors import CompressError
from compress.pipeline import BenchSettings, Listener, Request
from compress.tasks import OwnFiles


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"out": "runs"}, "no option `out`.*root"),
        ({"sedes": (0,)}, "no option `sedes`; did you mean `seeds`"),
        ({"task": "sst2"}, "no option `task`; did you mean `tasks`"),
        ({"overrides": {"distill.epochs": 1}}, r'overrides: expected a list like \["distill.epochs=1"\], found'),
        ({"overrides": "distill.epochs=1"}, "overrides: expected a list"),
        ({"seeds": ["first"]}, r"seeds: expected whole numbers such as \[0, 1, 2\] .*, found \['first'\]"),
        ({"seeds": 3}, r"seeds: expected whole numbers such as .* range\(3\), found 3"),
        ({"seeds": ()}, r"seeds: expected whole numbers .* found \(\)"),
        ({"bench": {"runs": 3}}, r"bench: expected compress\.pipeline\.BenchSettings\(\.\.\.\) or None, found"),
        ({"bench": BenchSettings(runs=0)}, "bench: runs: expected a whole number of at least 1, found 0"),
        (
            {"bench": BenchSettings(threads=cast(Any, "2"))},
            "bench: threads: expected a whole number of at least 1, found '2'",
        ),
        ({"bench": BenchSettings(shapes=((1, 0),))}, r"bench: shapes: expected pairs \(batch, length\)"),
        ({"overrides": 5}, r'overrides: expected a list like \["distill.epochs=1"\], found 5'),
        ({"overrides": ["distill.epochs"]}, "overrides: expected a list like"),
        ({"threads": "2"}, "threads: expected a whole number, found '2'"),
        ({"refit": "yes"}, "refit: expected True or False, found 'yes'"),
        ({"teacher": ["bert-mini", 5]}, r"teacher: expected a card, a checkpoint or several, found \['bert-mini', 5\]"),
        ({"teacher": []}, "teacher: expected a card, a checkpoint or several, found none"),
        ({"teacher": set()}, "teacher: expected a card, a checkpoint or several, found none"),
        ({"seeds": ""}, "seeds: expected whole numbers .* found ''"),
        ({"teacher": ""}, "teacher: expected a card, a checkpoint or several, found ''"),
        ({"teacher": ["bert-mini", ""]}, r"teacher: expected .* several, found \['bert-mini', ''\]"),
        ({"data_dir": ""}, "data_dir: expected a path, found ''"),
        ({"train": 5, "dev": "b.csv"}, "train: expected a path, found 5"),
        ({"max_length": "64"}, "max_length: expected a whole number, found '64'"),
        ({"teacher": Path("no-such-folder")}, "no-such-folder"),
        ({"student": Path("no-such-card.yaml")}, "no-such-card.yaml"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(CompressError, match=expected):
        whole: Any = {"teacher": "bert-mini"} | options
        compress.plan("distilbert", tasks=["toy-sentiment"], **whole)


@pytest.mark.parametrize("name", [name for name in Options.__annotations__ if name != "seeds"])
def test_no_option_takes_an_object_of_another_type(name: str) -> None:
    options: Any = {name: object()}
    with pytest.raises(CompressError, match=f"^{name}: expected .*, found <object"):
        compress.plan("int8", tasks="toy-sentiment", **options)


@pytest.mark.parametrize("recipes", [5, None, ["int8", 5], [], set(), "", ["int8", ""]])
def test_recipes_are_names_files_or_recipes(recipes: Any) -> None:
    with pytest.raises(CompressError, match=r"^recipes: expected a recipe's name, file or Recipe, or several, found"):
        compress.plan(recipes, tasks="toy-sentiment")


def test_paths_are_taken_where_words_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parents[1]
    words = {"teacher": "teachers/bert-mini.yaml", "student": "students/distil-1l.yaml"}
    for name in ("own/recipe.yaml", "own/task.yaml", *words.values()):
        (tmp_path / name).parent.mkdir(exist_ok=True)
    for name in words.values():
        (tmp_path / name).write_text((root / name).read_text())
    (tmp_path / "own/recipe.yaml").write_text(
        (root / "recipes/distilbert.yaml").read_text().replace("name: distilbert", "name: recipe")
    )
    (tmp_path / "own/task.yaml").write_text(TASK.replace("name: tiny-task", "name: task"))
    # Including a path that looks like the hub's OWNER/NAME, and NumPy integers.
    paths: Any = {name: Path(word) for name, word in words.items()} | {"seeds": np.arange(2)}
    plans = compress.plan(Path("own/recipe.yaml"), tasks=Path("own/task.yaml"), **paths)
    assert [plan.seed for plan in plans] == [0, 1]
    assert {plan.recipe.name for plan in plans} == {"recipe"}
    assert {plan.teacher.card.name for plan in plans} == {"bert-mini"}


def test_paths_may_begin_with_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "home/runs").write_text("no folder")
    for place in ("~/runs", Path("~/runs")):
        with pytest.raises(CompressError, match=str(tmp_path / "home/runs")):
            compress.run("int8", tasks="toy-sentiment", teacher="bert-mini", root=place)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_progress_is_shown_or_heard_by_a_listener() -> None:
    with pytest.raises(CompressError, match="progress and listener: expected one of the two"):
        compress.run("distilbert", tasks="toy-sentiment", progress=True, listener=Listener())


def test_a_listener_that_is_none_is_refused() -> None:
    listener: Any = object()
    with pytest.raises(CompressError, match=r"listener: expected a compress\.pipeline\.Listener, found <object"):
        compress.run("distilbert", tasks="toy-sentiment", listener=listener)


def test_its_options_are_those_of_a_request() -> None:
    """`own` is built from the options about the user's files; its task is named after them."""
    request, own = ({field.name for field in fields(kind)} for kind in (Request, OwnFiles))
    assert set(Options.__annotations__) == (request - {"recipes", "tasks", "own"}) | (own - {"name"})
