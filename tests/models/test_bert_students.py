"""BERT students, and properties of students of any architecture and initialization."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from default_suite import keeping
from pydantic import ValidationError
from tokenizers import Tokenizer
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
)

from compress import catalog
from compress.errors import CompressError
from compress.models.cards import StudentCard, load_student
from compress.models.checkpoints.folders import load_classifier, save_checkpoint
from compress.models.dimensions import Dimensions, dimensions
from compress.models.families import FAMILIES
from compress.models.students import (
    build_encoder,
    build_student,
    load_body,
    sample_tokens,
    student_dimensions,
)

STUDENTS = FAMILIES["bert"].student_families
LABELS = ("no", "maybe", "yes")
IDS = torch.tensor([[2, 17, 55, 90, 3, 0, 0], [2, 30, 31, 3, 33, 34, 3]])
MASK = (IDS != 0).long()
TYPES = torch.tensor([[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1]])
TEXT = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": TYPES}


ALBERTS: dict[str, dict[str, Any]] = {
    "albert": {"init": "convert", "albert": {"embedding": 8}},
}


def card(**fields: Any) -> StudentCard:
    own = ALBERTS.get(fields.get("architecture", ""), {})
    return StudentCard(**{"name": "s", "title": "S", "architecture": "bert", "layers": 2, **own, **fields})


def sizes(student: StudentCard, teacher: Any) -> Dimensions:
    return student_dimensions(student, dimensions(teacher.config.to_dict(), classes=3))


def built(student: StudentCard, teacher: Any, sample: list[Any] | None = None) -> Any:
    return build_student(student, teacher, sizes(student, teacher), sample)


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(**TEXT).logits


@pytest.fixture
def teacher(tiny_checkpoint: Callable[[str], Path]) -> Any:
    return load_classifier(tiny_checkpoint("bert"), kind="classification", labels=LABELS, trained=True).eval()


def test_copied_whole_it_has_the_teachers_logits(teacher: Any):
    student = built(card(), teacher)
    assert type(student) is BertForSequenceClassification
    assert torch.equal(logits(student), logits(teacher))
    assert student.bert.embeddings.word_embeddings.weight is not teacher.bert.embeddings.word_embeddings.weight


def test_the_layers_are_those_of_the_rule_and_the_rest_is_the_teachers(teacher: Any):
    student = built(card(layers=1, copy_layers=(1,)), teacher)
    mine, theirs = student.state_dict(), teacher.state_dict()
    for name, tensor in mine.items():
        assert torch.equal(tensor, theirs[name.replace("layer.0.", "layer.1.")])


def test_what_is_no_size_is_the_teachers(teacher: Any):
    teacher.config.update({"layer_norm_eps": 1e-7, "hidden_act": "relu", "hidden_dropout_prob": 0.3})
    student = built(card(init="random", hidden=24), teacher)
    assert (student.config.layer_norm_eps, student.config.hidden_act) == (1e-7, "relu")
    assert student.bert.encoder.layer[0].output.LayerNorm.eps == 1e-7
    assert student.dropout.p == 0.3
    assert student.config.id2label == dict(enumerate(LABELS))


@pytest.mark.parametrize("architecture", STUDENTS)
def test_a_random_student_has_its_own_sizes_and_the_callers_seed(teacher: Any, architecture: str):
    student = card(architecture=architecture, init="random", layers=3, hidden=40, heads=5, intermediate=56)
    planned, models = sizes(student, teacher), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        models.append(built(student, teacher))
    assert dimensions(models[0].config.to_dict(), classes=3) == planned
    assert planned.parameters == models[0].num_parameters()
    first, again, other = (torch.cat([weight.flatten() for weight in model.parameters()]) for model in models)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("architecture", STUDENTS)
def test_an_encoder_is_the_body_of_the_classifier(
    tiny_checkpoint: Callable[[str], Path], teacher: Any, architecture: str
):
    headless = AutoModel.from_pretrained(tiny_checkpoint("bert"))
    student = card(architecture=architecture, layers=1)
    sample = [TEXT] if sample_tokens(student) else None
    encoder = build_encoder(student, headless, sizes(student, headless), sample)
    body = built(student, teacher, sample).base_model
    assert type(encoder) is type(body)
    actual, expected = encoder.state_dict(), body.state_dict()
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[name], expected[name]) for name in actual)


def test_a_teacher_without_a_pooler_has_students(teacher: Any):
    headless: Any = BertModel(teacher.config, add_pooling_layer=False)
    encoder: Any = build_encoder(card(), headless, sizes(card(), headless))
    assert torch.equal(encoder.encoder.layer[1].output.dense.weight, headless.encoder.layer[1].output.dense.weight)


@pytest.mark.parametrize("architecture", STUDENTS)
def test_a_body_is_loaded_and_the_head_stays(teacher: Any, toy_tokenizer: Tokenizer, tmp_path: Path, architecture: str):
    chosen = card(architecture=architecture, layers=1, hidden=24, heads=3, init="random")
    encoder = build_encoder(chosen, teacher.base_model, sizes(chosen, teacher))
    save_checkpoint(encoder, toy_tokenizer, tmp_path)
    student = built(chosen, teacher)
    before = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    load_body(student, tmp_path)
    body = {f"{student.base_model_prefix}.{name}": tensor for name, tensor in encoder.state_dict().items()}
    for name, tensor in student.state_dict().items():
        kept = name not in body or "pooler" in name
        assert torch.equal(tensor, (before if kept else body)[name])
    assert not torch.equal(*(state[next(iter(body))] for state in (before, body)))


@pytest.mark.parametrize("architecture", [name for name in STUDENTS if name != "distilbert"])
def test_a_pooler_that_was_trained_is_taken_over(
    teacher: Any, toy_tokenizer: Tokenizer, tmp_path: Path, architecture: str
):
    chosen = card(architecture=architecture, layers=1, hidden=24, heads=3, init="random")
    encoder = build_encoder(chosen, teacher.base_model, sizes(chosen, teacher))
    save_checkpoint(encoder, toy_tokenizer, tmp_path)
    student = built(chosen, teacher)
    head = student.classifier.weight.clone()
    load_body(student, tmp_path, pooler=True)
    state = student.base_model.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in encoder.state_dict().items())
    assert any("pooler" in name for name in state)
    assert torch.equal(student.classifier.weight, head)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"hidden": 28},
            r"not an encoder of this student's sizes: embeddings.LayerNorm.bias: expected \(24,\), found \(28,\)",
        ),
        ({"layers": 2}, r"encoder.layer.1.attention.output.LayerNorm.bias: expected none, found \(24,\)"),
        ({"architecture": "distilbert"}, r"embeddings.token_type_embeddings.weight: expected \(2, 24\), found none"),
    ],
)
def test_a_body_of_other_sizes_is_refused(
    teacher: Any, toy_tokenizer: Tokenizer, tmp_path: Path, other: dict[str, Any], message: str
):
    fields = {"layers": 1, "hidden": 24, "heads": 2, "init": "random"}
    wrong = card(**fields | other)
    save_checkpoint(build_encoder(wrong, teacher.base_model, sizes(wrong, teacher)), toy_tokenizer, tmp_path)
    student = built(card(**fields), teacher)
    with pytest.raises(CompressError, match=message):
        load_body(student, tmp_path)


def test_a_saved_student_is_a_plain_transformers_classifier(teacher: Any, toy_tokenizer: Tokenizer, tmp_path: Path):
    chosen = card(layers=1, hidden=24, heads=3, init="random")
    student = built(chosen, teacher)
    save_checkpoint(student, toy_tokenizer, tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert type(loaded) is BertForSequenceClassification
    # fp32: weights mapped from a file have other addresses, for which kernels may sum in another order
    torch.testing.assert_close(logits(loaded), logits(student), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("family", "student", "message"),
    [
        ("roberta", card(init="project"), "a projected student is of the teacher's family, roberta"),
        ("bert", card(hidden=24), "student s: hidden is 24 and the teacher's is 32; copied layers need"),
        ("bert", card(hidden=24), "choose another with --student, or give the card `init: project`"),
        ("bert", card(init="random", hidden=25), "student s: hidden is 25, which 2 heads do not divide evenly"),
        (
            "bert",
            card(init="project", hidden=24, heads=3),
            "heads is 3 and the teacher's is 2; a projected student keeps",
        ),
        (
            "bert",
            card(init="project", hidden=48),
            "hidden is 48 and the teacher's is 32; a projected student is no wider",
        ),
        ("bert", card(init="project", intermediate=65), "intermediate is 65 and the teacher's is 64"),
        ("bert", card(init="project", layers=3), "student s has 3 layers and the teacher 2"),
    ],
)
def test_a_card_that_does_not_fit_the_teacher(
    tiny_checkpoint: Callable[[str], Path], family: str, student: StudentCard, message: str
):
    config = AutoModel.from_pretrained(tiny_checkpoint(family)).config
    with pytest.raises(CompressError, match=message):
        student_dimensions(student, dimensions(config.to_dict(), classes=3))


def test_only_a_bert_is_projected():
    with pytest.raises(
        ValidationError, match="one of `copy`, `prune`, `random` for a student `distilbert`; found `project`"
    ):
        card(architecture="distilbert", init="project")


def test_the_start_is_told_only_where_it_is_not_the_usual_one():
    """The keys of the store depend on what is dumped."""
    assert "init" not in card().model_dump(mode="json")
    assert card(init="random").model_dump(mode="json")["init"] == "random"
    assert [sample_tokens(card(init=init)) > 0 for init in ("copy", "random", "project")] == [False, False, True]


MATCHING = {
    "tinybert-4l-312": {"num_hidden_layers": 12},
    "distilbert-6l": {"num_hidden_layers": 12},
    "tinybert-6l-768": {"num_hidden_layers": 12, "hidden_size": 768},
    "tiny-3l-384": {"hidden_size": 384},
    "tiny-3l-384-project": {"hidden_size": 384},
    "tiny-3l-312-project": {"hidden_size": 384, "intermediate_size": 1224},
    "tiny-2l": {"num_hidden_layers": 4},
    "distil-1l": {"num_hidden_layers": 4},
    "albert-4l": {"num_hidden_layers": 4, "hidden_size": 48},
    "albert-6l": {"hidden_size": 144},
    "albert-12x768": {"num_hidden_layers": 12, "hidden_size": 768},
} | {
    name: {"hidden_size": 384}
    for name in catalog.names("students")
    if name.startswith(("albert-6x384", "albert-3x384"))
}


LARGE = {"tiny-3l-312-project", "tiny-3l-384-project", "albert-12x768"}
OF_BERT = [
    name
    for name in catalog.names("students")
    if load_student(name).of("bert").architecture in STUDENTS and load_student(name).init != "pretrained"
]


@pytest.mark.parametrize("name", keeping(OF_BERT, set(OF_BERT) - LARGE))
def test_every_card_is_built_from_a_teacher_that_matches(name: str):
    config = BertConfig.from_dict(
        {
            "vocab_size": 60,
            "hidden_size": 24,
            "num_hidden_layers": 6,
            "num_attention_heads": 12,
            "intermediate_size": 32,
        }
        | {"max_position_embeddings": 16, "num_labels": 3}
        | MATCHING.get(name, {})
    )
    teacher, student = BertForSequenceClassification(config), load_student(name)
    planned = sizes(student, teacher)
    sample = [{key: array % 60 for key, array in TEXT.items()}] if sample_tokens(student) else None
    model = built(student, teacher, sample)
    assert dimensions(model.config.to_dict(), classes=3) == planned
    assert model.num_parameters() == planned.parameters
    shown = name.rpartition("l-")[2].split("-")[0]
    assert not shown.isdigit() or planned.hidden == int(shown)
