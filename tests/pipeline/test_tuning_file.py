"""A user's own tuning split in plans and runs, and the note for an adopted teacher without one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.cli.plans import plan_documents
from compress.errors import CompressError
from compress.files.paths import display_path
from compress.pipeline import Request, plan_all, run_all
from compress.pipeline.request import command_line
from compress.pipeline.stages.adopt import SEEN_TUNING

TASK = """
name: own
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 16
files: {train: train.csv, dev: dev.csv}
"""


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    for name, count in (("train", 60), ("dev", 10), ("mine", 20)):
        rows = "".join(f"the {name} film {i} is good,{('negative', 'positive')[i % 2]}\n" for i in range(count))
        (tmp_path / f"{name}.csv").write_text(f"sentence,label\n{rows}")
    (tmp_path / "own.yaml").write_text(TASK)
    return tmp_path


def request(world: Path, *, tuning: Path | None = None, tasks: tuple[str, ...] = ("own.yaml",)) -> Request:
    return Request(
        ("int8",),
        tuple(str(world / task) for task in tasks),
        teacher=str(world / "teacher"),
        tuning=tuning,
        root=world / "runs",
        overrides=("finetune.max_steps=1", "quantize.method=dynamic"),
        precision="fp32",
        threads=1,
        bench=None,
    )


def fine_tuned(world: Path) -> None:
    config = world / "teacher" / "config.json"
    fields = {**json.loads(config.read_text()), "architectures": ["BertForSequenceClassification"]}
    fields |= {"id2label": {"0": "negative", "1": "positive"}, "label2id": {"negative": 0, "positive": 1}}
    config.write_text(json.dumps(fields))


def test_its_contents_are_in_every_key_that_the_data_are_in(world: Path) -> None:
    mine = world / "mine.csv"
    keys = [plan_all(request(world, tuning=tuning))[0].nodes[0].key for tuning in (None, mine)]
    mine.write_text(mine.read_text() + "another film,positive\n")
    keys.append(plan_all(request(world, tuning=mine))[0].nodes[0].key)
    assert len(set(keys)) == 3


def test_the_command_of_a_run_names_it(world: Path) -> None:
    (plan,) = plan_all(request(world, tuning=world / "mine.csv"))
    assert "--tuning" in command_line(request(world, tuning=world / "mine.csv"), plan)
    assert "--tuning" not in command_line(request(world), plan)


def test_it_is_the_split_of_one_task(world: Path) -> None:
    with pytest.raises(CompressError, match="--tuning: one file is the tuning split of one task, found several"):
        plan_all(request(world, tuning=world / "mine.csv", tasks=("own.yaml", "task.yaml")))


def test_a_missing_one_is_named_in_the_plan(world: Path) -> None:
    with pytest.raises(CompressError, match=r"none\.csv: no such file"):
        plan_all(request(world, tuning=world / "none.csv"))


def test_the_plan_says_how_near_the_splits_are(world: Path) -> None:
    # Texts of six words that differ in one: none contains another.
    plans = plan_all(request(world, tuning=world / "mine.csv"))
    (document,) = plan_documents(plans, world / "runs")
    note = document["notes"][-1]
    assert note.startswith("near to train (7 words in a row in common")
    assert note.endswith("tuning 0 of 20 (0.0%), dev 0 of 10 (0.0%)")
    (world / "dev.csv").write_text("sentence,label\ntrain film 3,positive\nanother,negative\n")
    (document,) = plan_documents(plan_all(request(world)), world / "runs")
    assert document["notes"][-1].endswith("tuning 0 of 6 (0.0%), dev 1 of 2 (50.0%)")


def test_what_is_held_out_counts_as_train_for_reported_splits(world: Path) -> None:
    """As it does where shared texts are counted."""
    shared = "".join(f"{text},positive\n" for text in plan_all(request(world))[0].task.data.tuning.texts[0])
    (world / "dev.csv").write_text("sentence,label\n" + shared + "".join(f"another {i},negative\n" for i in range(6)))
    (document,) = plan_documents(plan_all(request(world)), world / "runs")
    assert "6 of 12 dev texts also stand in train" in document["notes"]
    assert any(note.endswith("tuning 0 of 6 (0.0%), dev 6 of 12 (50.0%)") for note in document["notes"])


def test_an_adopted_teacher_has_probably_seen_what_is_held_out(world: Path) -> None:
    assert SEEN_TUNING not in plan_all(request(world))[0].notes
    fine_tuned(world)
    assert SEEN_TUNING in plan_all(request(world))[0].notes
    assert SEEN_TUNING not in plan_all(request(world, tuning=world / "mine.csv"))[0].notes
    (world / "own.yaml").write_text(TASK.replace("dev: dev.csv", "dev: dev.csv, tuning: mine.csv"))
    assert SEEN_TUNING not in plan_all(request(world))[0].notes


def test_a_run_tunes_on_it_and_its_result_says_so(world: Path) -> None:
    (result,) = run_all(request(world, tuning=world / "mine.csv"))
    assert result.task.data.rows == {"train": 60, "tuning": 20, "dev": 10}
    assert any(note.endswith("tuning 0 of 20 (0.0%), dev 0 of 10 (0.0%)") for note in result.task.data.notes)
    assert result.models[-1].info["fidelity"]["examples"] == 20


def test_a_command_names_the_recipe_by_which_it_was_asked_for(world: Path) -> None:
    """Also if --set gives it another name, and each of two files with the same name."""
    renamed = replace(request(world), recipes=("int8",), overrides=("name=other", "finetune.epochs=2"))
    (plan,) = plan_all(renamed)
    assert plan.recipe.name == "other"
    words = shlex.split(command_line(renamed, plan))
    assert words[:3] == ["compress", "run", "int8"] and words[-4:] == [
        "--set",
        "name=other",
        "--set",
        "finetune.epochs=2",
    ]
    recipe = (Path(__file__).parents[2] / "recipes" / "int8.yaml").read_text().replace("name: int8", "name: mine")
    files = [world / folder / "mine.yaml" for folder in ("a", "b")]
    for number, file in enumerate(files):
        file.parent.mkdir()
        file.write_text(recipe.replace("- finetune:", f"- finetune: {{epochs: {number + 1}}}"))
    both = replace(request(world), recipes=tuple(map(str, files)))
    plans = plan_all(both)
    assert len(plans) == 2
    assert [shlex.split(command_line(both, plan))[2] for plan in plans] == [display_path(str(file)) for file in files]
