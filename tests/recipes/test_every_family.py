"""Teachers of every family, with its kind of tokenizer, briefly through every recipe that makes a student."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from family_teachers import KINDS, WHOLE_LAYERS, teacher_of, texts, tokenizer_of
from recipe_runs import TASK
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import compress
from compress.bundle import ship, verify
from compress.catalog import load_recipe
from compress.models.dimensions import read_config
from compress.models.masked_lm import has_masked_lm_head
from compress.results import Result
from compress.runtime import Classifier

pytestmark = pytest.mark.end_to_end

RECIPES = ("distilbert", "tinybert-small", "minilm", "albert")
FEWER = "name: fewer\ntitle: Fewer layers, of the teacher's family\nlayers: 2\n"
PLAIN = "name: plain\ntitle: A BERT\narchitecture: bert\nlayers: 2\n"
NARROW_TABLES = "name: small\ntitle: ALBERT\narchitecture: albert\nlayers: 2\ninit: convert\nalbert: {embedding: 8}\n"
DEFAULT = {"roberta": "tinybert-small"}  # has another tokenizer; `make test-all` runs the rest
WORDS = 250_002  # XLM-R's
WITH_MASKED_LM = ("roberta", "xlm-roberta")  # for the others the recipe trains the masked-LM head
BRIEF = "{0}.max_steps=2 {0}.batch_size=8 {0}.max_length=16"
OF_TASK = ("finetune", "distill", "embeddings", "intermediate", "prediction")
OF_TEXT = ("masked_lm", "general")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    (folder / "task.yaml").write_text(TASK.replace("max_length: 24", "max_length: 16"))
    (folder / "text.txt").write_text("\n".join(texts()))
    (folder / "fewer.yaml").write_text(FEWER)
    (folder / "plain.yaml").write_text(PLAIN)
    (folder / "small.yaml").write_text(NARROW_TABLES)
    return folder


def run(world: Path, family: str, recipe: str, *, more_words: int = 0, student: str | None = None) -> Result:
    teacher = world / f"{family}{more_words or ''}"
    if not teacher.exists():
        teacher_of(family, teacher, masked_lm=family in WITH_MASKED_LM, more_words=more_words)
    names = [stage.id for stage in load_recipe(recipe).stages if stage.id in (*OF_TASK, *OF_TEXT)]
    reads_text = any(name in OF_TEXT for name in names)
    (result,) = compress.run(
        recipe,
        tasks=str(world / "task.yaml"),
        teacher=str(teacher),
        student=student and str(world / student),
        corpus=(str(world / "text.txt"),) if reads_text else (),
        root=world / "runs",
        overrides=tuple(word for name in names for word in BRIEF.format(name).split()),
        threads=1,
        precision="fp32",
        bench=None,
    )
    return result


def _student(family: str, recipe: str) -> str | None:
    """Return the student, or None for the recipe's own."""
    if family in WHOLE_LAYERS:
        return "fewer.yaml"
    if recipe != "albert":
        return None
    return "fewer.yaml" if family == "albert" else "small.yaml"


@pytest.mark.parametrize(
    ("family", "recipe"),
    [
        pytest.param(family, recipe, marks=[] if DEFAULT.get(family) == recipe else [pytest.mark.slow])
        for family in KINDS
        for recipe in RECIPES
        if not (family in WHOLE_LAYERS and recipe == "albert")
    ],
)
def test_a_teacher_becomes_a_student_in_int8(world: Path, family: str, recipe: str) -> None:
    result = run(world, family, recipe, student=_student(family, recipe))
    folders = {stage.kind: world / "runs/.store" / stage.key for stage in result.stages}
    last = [folder for kind, folder in folders.items() if kind.startswith("distill ")][-1]
    expected = {"albert": "albert"}.get(recipe, family)
    expected = "distilbert" if (family, recipe) == ("bert", "distilbert") else expected
    assert read_config(last)["model_type"] == expected
    assert result.final.precision == "int8"
    assert result.final.info["int8_matmuls"] > 0
    assert result.final.flops_per_token < result.models[0].flops_per_token
    assert has_masked_lm_head(world / family) == (family in WITH_MASKED_LM)
    if recipe == "tinybert-small":
        assert ("masked_lm masked-lm" in folders) == (family not in WITH_MASKED_LM)
        assert (folders["augment augmented"] / "augmented.jsonl").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("family", WHOLE_LAYERS)
def test_a_teacher_with_the_plain_graph_alone_is_shipped_and_asked(world: Path, family: str, tmp_path: Path) -> None:
    result = run(world, family, "int8")
    assert {"export": {"graph": "plain", "opset": 20}} in result.recipe["stages"]
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store")
    assert all(check.passed for check in verify(bundle).checks)
    assert Classifier(bundle).predict(["the film is good"])[0].label in result.task.labels


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_an_xlm_r_of_250_002_words_goes_through_every_recipe(world: Path, recipe: str) -> None:
    few = max(tokenizer_of("xlm-roberta").get_vocab().values()) + 1
    result = run(world, "xlm-roberta", recipe, more_words=WORDS - few, student=_student("xlm-roberta", recipe))
    width = 8 if recipe == "albert" else 32
    assert result.final.embedding_parameters > WORDS * width
    assert result.final.parameters - result.final.embedding_parameters < 30_000
    assert result.final.info["int8_matmuls"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [family for family in KINDS if family not in WHOLE_LAYERS],
)
def test_a_bert_with_the_teachers_tokenizer_is_shipped_and_asked(world: Path, family: str, tmp_path: Path) -> None:
    result = run(world, family, "distilbert", student="plain.yaml")
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store")
    assert all(check.passed for check in verify(bundle).checks)
    sentences = ["the film is good", "the acting is not good and the story is bad ."]
    (last,) = [stage.key for stage in result.stages if stage.kind == "distill student"]
    folder = world / "runs/.store" / last
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert model.config.model_type == "bert"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(sentences, return_tensors="pt", padding=True, truncation=True, max_length=16)  # as in the task
    with torch.no_grad():
        expected = model(**inputs).logits.numpy()
        model(**tokenizer(*sentences, return_tensors="pt", truncation=True))  # a pair, segments and all
    np.testing.assert_allclose(Classifier(bundle, precision="fp32").logits(sentences), expected, atol=1e-5)
