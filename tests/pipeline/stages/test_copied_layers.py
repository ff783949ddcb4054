"""Students whose layers are chosen by the run (`init: prune`), for every kind of task and every family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from family_teachers import KINDS, teacher_of
from plain_teachers import plain_teacher
from recipe_runs import TEACHER
from vocabulary_runs import vocabulary_world

from compress.errors import CompressError
from compress.models.dimensions import read_config
from compress.models.families import FAMILIES
from compress.pipeline import Listener, Request, build_stage
from compress.pipeline.plan.students import CHOSEN_LAYERS
from compress.tasks import OwnFiles

STUDENT = "name: short\ntitle: Short\nlayers: 2\ninit: prune\nexamples: 32\n"
TASKS = {
    "scored": lambda n: {"text": f"film {n} is {('bad', 'good')[n % 2]}", "label": n % 5 / 4},
    "marked": lambda n: {"text": f"film {n}", "label": ["old", "good"][: n % 3]},
    "ends": lambda n: {"context": f"film {n}", "endings": ["is good", "is bad"], "label": n % 2},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = vocabulary_world(tmp_path_factory.mktemp("copied"))
    (folder / "short.yaml").write_text(STUDENT)
    (folder / "mpnet.yaml").write_text(
        TEACHER.replace("random: {", "random: {architecture: mpnet, ").replace("tiny", "mpnet")
    )
    for split, numbers in (("train", range(60)), ("dev", range(60, 72))):
        rows = {name: [row(n) for n in numbers] for name, row in TASKS.items()}
        rows["ranked"] = [
            {"query": f"film {n}", "passage": f"a {word} film {n}", "relevance": int(place == n % 2)}
            for n in numbers
            for place, word in enumerate(("good", "bad"))
        ]
        for name, lines in rows.items():
            (folder / f"{name}-{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in lines))
    return folder


def request(world: Path, teacher: str, task: str) -> Request:
    options: dict[str, Any] = {"root": world / "runs", "threads": 1, "precision": "fp32", "bench": None}
    options |= {"teacher": str(world / teacher), "student": str(world / "short.yaml")}
    options |= {"overrides": ("finetune.max_steps=2", "distill.max_steps=2", "distill.batch_size=8")}
    if (world / f"{task}.yaml").is_file():
        return Request(("distilbert",), (str(world / f"{task}.yaml"),), **options)
    kind: Any = {"scored": "regression", "marked": "multilabel"}.get(task)
    train, dev = (world / f"{task}-{split}.jsonl" for split in ("train", "dev"))
    return Request(("distilbert",), own=OwnFiles(train=train, dev=dev, kind=kind, max_length=24), **options)


class Progress(Listener):
    def __init__(self) -> None:
        super().__init__()
        self.judged: list[tuple[int, int | None]] = []

    def progress(self, what: str, done: int, total: int | None) -> None:
        if what == "judging layers":
            self.judged.append((done, total))


def check(own: Request, layers: int) -> list[int]:
    """Check that the student is made of the chosen layers, and return these."""
    listener = Progress()
    info = build_stage(own, CHOSEN_LAYERS, listener).info
    assert listener.judged == [(done, len(listener.judged)) for done in range(1, len(listener.judged) + 1)] != []
    copied = info["copied_layers"]
    assert sorted([*copied, *info["dropped"]]) == [*range(layers)]
    assert len(copied) == 2
    assert 32 <= info["examples"] <= (64 if own.tasks and "vectors" in own.tasks[0] else 32)  # both texts of a pair
    assert info["copied_divergence"] > 0 and info["spaced_divergence"] > 0
    config = read_config(build_stage(own, "student").path)
    assert config[FAMILIES[config["model_type"]].own_name("num_hidden_layers")] == 2
    return copied


@pytest.mark.slow
@pytest.mark.parametrize("task", ["scored", "marked", "tags", "asked", "vectors", "ranked", "ends"])
def test_every_kind_of_task_tells_which_layers_matter(world: Path, task: str) -> None:
    check(request(world, "tiny.yaml", task), 4)


@pytest.mark.slow
@pytest.mark.parametrize("family", [*(family for family in KINDS if family != "albert"), "mpnet.yaml", "deberta-v2"])
def test_a_teacher_of_every_family_has_such_a_student(world: Path, family: str) -> None:
    if family != "mpnet.yaml":
        (teacher_of if family in KINDS else plain_teacher)(family, world / family)
    own = request(world, family, "texts")
    teacher = read_config(build_stage(own, "teacher").path)
    record = FAMILIES[teacher["model_type"]]
    copied = check(own, teacher[record.own_name("num_hidden_layers")])
    student = read_config(build_stage(own, "student").path)
    for name in record.layers.config_lists:  # for example a ModernBERT's, whose layers are local or global
        assert student[name] == [teacher[name][layer] for layer in copied]
    assert copied[0] == 0 or not record.layers.first_differs


@pytest.mark.slow
def test_a_teacher_whose_layers_are_one_is_refused_by_name(world: Path) -> None:
    teacher_of("albert", world / "albert")
    with pytest.raises(CompressError, match="student short: init: prune: layers of an ALBERT share weights"):
        build_stage(request(world, "albert", "texts"), CHOSEN_LAYERS)
