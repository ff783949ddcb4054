"""Teachers of every family through every recipe that makes a student, briefly: with the family's kind of tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from family_teachers import KINDS, teacher_of, texts
from recipe_runs import TASK

import compress
from compress.catalog import load_recipe
from compress.models.dimensions import read_config
from compress.models.masked_lm import has_masked_lm_head
from compress.results import Result

RECIPES = ("distilbert", "tinybert-small", "minilm", "albert")
FEWER = "name: fewer\ntitle: Fewer layers, of the teacher's family\nlayers: 2\n"
NARROW_TABLES = "name: small\ntitle: ALBERT\narchitecture: albert\nlayers: 2\ninit: convert\nalbert: {embedding: 8}\n"
DEFAULT = {  # one for each family, each recipe among them; `make test-all` runs the rest
    "bert": "distilbert",
    "distilbert": "minilm",
    "roberta": "tinybert-small",
    "xlm-roberta": "distilbert",
    "camembert": "minilm",
    "electra": "albert",
    "albert": "minilm",
}
WITH_MASKED_LM = ("roberta", "xlm-roberta")  # of the rest the recipe trains one
BRIEF = "{0}.max_steps=2 {0}.batch_size=8 {0}.max_length=16"
OF_TASK = ("finetune", "distill", "embeddings", "intermediate", "prediction")
OF_TEXT = ("masked_lm", "general")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    (folder / "task.yaml").write_text(TASK.replace("max_length: 24", "max_length: 16"))
    (folder / "text.txt").write_text("\n".join(texts()))
    (folder / "fewer.yaml").write_text(FEWER)
    (folder / "small.yaml").write_text(NARROW_TABLES)
    return folder


def run(world: Path, family: str, recipe: str) -> Result:
    teacher = world / family
    if not teacher.exists():
        teacher_of(family, teacher, masked_lm=family in WITH_MASKED_LM)
    names = [stage.id for stage in load_recipe(recipe).stages if stage.id in (*OF_TASK, *OF_TEXT)]
    reads_text = any(name in OF_TEXT for name in names)
    (result,) = compress.run(
        recipe,
        tasks=str(world / "task.yaml"),
        teacher=str(teacher),
        student=str(world / ("fewer.yaml" if family == "albert" else "small.yaml")) if recipe == "albert" else None,
        corpus=(str(world / "text.txt"),) if reads_text else (),
        root=world / "runs",
        overrides=tuple(word for name in names for word in BRIEF.format(name).split()),
        threads=1,
        precision="fp32",
        bench=None,
    )
    return result


@pytest.mark.parametrize(
    ("family", "recipe"),
    [
        pytest.param(family, recipe, marks=[] if DEFAULT[family] == recipe else [pytest.mark.slow])
        for family in KINDS
        for recipe in RECIPES
    ],
)
def test_a_teacher_becomes_a_student_in_int8(world: Path, family: str, recipe: str) -> None:
    result = run(world, family, recipe)
    made = {stage.kind: world / "runs/.store" / stage.key for stage in result.stages}
    last = [folder for kind, folder in made.items() if kind.startswith("distill ")][-1]
    expected = {"albert": "albert"}.get(recipe, family)
    expected = "distilbert" if (family, recipe) == ("bert", "distilbert") else expected
    assert read_config(last)["model_type"] == expected
    assert result.final.precision == "int8"
    assert result.final.info["int8_matmuls"] > 0
    assert result.final.flops_per_token < result.models[0].flops_per_token
    assert has_masked_lm_head(world / family) == (family in WITH_MASKED_LM)
    if recipe == "tinybert-small":
        assert ("masked_lm masked-lm" in made) == (family not in WITH_MASKED_LM)
        assert (made["augment augmented"] / "augmented.jsonl").stat().st_size > 0
