"""Texts that are cut at `max_length`: plans, runs and results say how many, and plans which length keeps them whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from listeners import Notices
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.cli.plans import plan_documents
from compress.pipeline import Request, plan_all, run_all
from compress.pipeline.results.reported import ReportedSource
from compress.pipeline.results.truncation import truncation, truncation_notes
from compress.spec.task import TaskSpec
from compress.tasks import OwnFiles

CUT = "54 of 54 train, 6 of 6 tuning and 1 of 10 dev texts have more than 16 tokens and are cut"
TASK = "name: own\ntext: [text]\nlabel: label\nmetrics: [accuracy]\nmax_length: 16\nfiles: {train: train.csv, dev: dev.csv}\n"


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    """Train texts have 22 tokens, those of dev 6, except for one of 22; the teacher has 24 positions."""
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    write(tmp_path, "train", [20] * 60)
    write(tmp_path, "dev", [4] * 9 + [20])
    (tmp_path / "own.yaml").write_text(TASK)
    return tmp_path


def write(folder: Path, name: str, words: list[int]) -> None:
    word = {"train": "film ", "dev": "bad "}[name]
    rows = "".join(f"{word * (count - 1)}{row},{('good', 'bad')[row % 2]}\n" for row, count in enumerate(words))
    (folder / f"{name}.csv").write_text(f"text,label\n{rows}")


def request(world: Path, *, own: bool = False, max_length: int = 16, recipes: tuple[str, ...] = ("int8",)) -> Request:
    files = OwnFiles(world / "train.csv", world / "dev.csv", "text", None, "label", None, max_length)
    return Request(
        recipes,
        () if own else (str(world / "own.yaml"),),
        own=files if own else None,
        teacher=str(world / "teacher"),
        root=world / "runs",
        overrides=("finetune.max_steps=1", "quantize.method=dynamic"),
        precision="fp32",
        threads=1,
        bench=None,
    )


def notes(world: Path, **options: object) -> list[str]:
    (document,) = plan_documents(plan_all(request(world, **options)), world / "runs")  # type: ignore[arg-type]
    return [note for note in document["notes"] if "are cut" in note]


def test_the_plan_says_how_many_texts_are_cut_and_which_length_keeps_them(world: Path) -> None:
    assert notes(world) == [f"{CUT}; max_length: 24 in own.yaml keeps all of them whole"]
    assert notes(world, own=True) == [f"{CUT}; --max-length 24 keeps all of them whole"]
    assert notes(world, own=True, max_length=24) == []


def test_the_length_is_one_that_nearly_all_texts_have_or_the_most_that_models_have_positions_for(world: Path) -> None:
    write(world, "train", [20] * 299 + [60])
    assert notes(world, own=True)[0].endswith("--max-length 24 keeps nearly all of them whole")
    write(world, "train", [20] * 45 + [400] * 15)
    name = plan_all(request(world))[0].teacher.card.name
    (note,) = notes(world, own=True)
    assert note.endswith(f"; --max-length 24, the most that {name} has positions for, keeps 75% of them whole")
    (note,) = notes(world, own=True, max_length=24)
    assert note.endswith(f"and are cut; 24 is the most that {name} has positions for")


def test_of_a_few_in_a_hundred_nothing_is_said(world: Path) -> None:
    write(world, "dev", [4] * 10)
    write(world, "train", [20] + [4] * 199)
    assert notes(world) == []
    write(world, "train", [20] * 4 + [4] * 196)
    assert len(notes(world)) == 1


def test_a_single_text_is_one(world: Path) -> None:
    write(world, "train", [4] * 60)
    (plan,) = plan_all(request(world))
    (note,) = truncation_notes([plan], {plan.task.fingerprint: ReportedSource.of(plan.task)}).values()
    assert note.startswith("1 of 10 dev texts has more than 16 tokens and is cut; max_length: 24 in own.yaml")


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("embedding", "examples have a text of more than 16 tokens, which is cut"),
        ("regression", "pairs have more than"),
    ],
)
def test_pairs_are_cut_together_or_each_text_alone(world: Path, kind: str, what: str) -> None:
    for name, word in (("train", "film "), ("dev", "bad ")):
        rows = "".join(f"{word * 7}{row},{'bad ' * (7 + row % 2 * 8)},{row % 5}\n" for row in range(40))
        (world / f"{name}.csv").write_text(f"text,other,label\n{rows}")
    task = TASK.replace("[text]", "[text, other]").replace("accuracy", "spearman") + f"kind: {kind}\n"
    (world / "own.yaml").write_text(task)
    (plan,) = plan_all(request(world))
    (note,) = truncation_notes([plan], {plan.task.fingerprint: ReportedSource.of(plan.task)}).values()
    count = 40 if kind == "regression" else 20
    assert f"{count} of 40 dev {what}" in note


def test_estimates_are_marked(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compress.tasks.batches.long_examples._SAMPLE", 50)
    assert notes(world)[0].startswith("about 54 of 54 train, 6 of 6 tuning and 1 of 10 dev texts")


def test_a_built_in_task_has_no_length_to_change(world: Path) -> None:
    (plan,) = plan_all(request(world))
    cut = truncation(plan, ReportedSource.of(plan.task))
    assert cut is not None
    built_in = TaskSpec.model_validate(cut.spec.model_dump()).model_copy(update={"files": None})
    assert replace(cut, spec=built_in).note == CUT


@pytest.mark.parametrize("kind", ["tagging", "span"])
def test_texts_that_are_read_in_windows_are_not_cut(world: Path, kind: str) -> None:
    (plan,) = plan_all(request(world))
    plan.task.spec = plan.task.spec.model_copy(update={"kind": kind})
    assert truncation(plan, ReportedSource.of(plan.task)) is None


def test_runs_and_results_say_it_and_only_runs_advise(world: Path) -> None:
    heard = Notices()
    (result,) = run_all(request(world), heard)
    assert [line for line in heard.notices if "are cut" in line] == [
        f"{CUT}; max_length: 24 in own.yaml keeps all of them whole"
    ]
    assert [note for note in result.task.data.notes if "are cut" in note] == [CUT]
