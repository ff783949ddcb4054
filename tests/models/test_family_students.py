"""Students of every family's teachers, of its own form or BERT's: what they keep, their sizes, and what is reported about the
rest."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import keeping, slow
from family_teachers import KINDS, LABELS, WHOLE_LAYERS, classifier_of
from text_batches import batches

from compress.errors import CompressError, with_article
from compress.export.fast import build_fast
from compress.graphs.model_files import write_model
from compress.models.cards import StudentCard, load_student
from compress.models.dimensions import Dimensions, dimensions
from compress.models.features.named import compute_features
from compress.models.students import build_encoder, build_student, layer_norm_epsilon, not_kept, student_dimensions
from compress.sessions.opening import open_session

FAMILIES = pytest.mark.parametrize("family", list(KINDS))
BY_PARTS = pytest.mark.parametrize("family", [family for family in KINDS if family not in WHOLE_LAYERS])
NARROW = {"init": "random", "hidden": 16, "heads": 4, "intermediate": 24}


def card(layers: int = 4, **more: Any) -> StudentCard:
    return StudentCard(**{"name": "s", "title": "S", "layers": layers, **more})


@cache
def teacher_of(family: str, **fields: Any) -> Any:
    return classifier_of(family, **fields)


def sizes(student: StudentCard, teacher: Any) -> Dimensions:
    return student_dimensions(student, dimensions(teacher.config.to_dict(), classes=len(LABELS)))


def built(student: StudentCard, teacher: Any) -> Any:
    return build_student(student.of(teacher.config.model_type), teacher, sizes(student, teacher)).eval()


def batch() -> dict[str, Any]:
    torch.manual_seed(3)
    ids, mask = torch.randint(5, 90, (3, 11)), torch.ones(3, 11, dtype=torch.int64)
    mask[1, 7:], mask[2, 2:] = 0, 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}


def features(model: Any, *names: str) -> dict[str, Any]:
    with torch.no_grad():
        return compute_features(model, batch(), names)


def hidden(model: Any, layers: int) -> list[Any]:
    """Return the states of the real tokens at the embeddings and after each layer."""
    states = features(model, *(f"hidden[{layer}]" for layer in range(layers + 1)))
    return [states[f"hidden[{layer}]"][batch()["attention_mask"].bool()] for layer in range(layers + 1)]


@FAMILIES
def test_with_all_layers_it_is_its_teacher(family: str):
    teacher = teacher_of(family)
    student = built(card(), teacher)
    assert student.config.model_type == family
    assert torch.equal(features(student, "logits")["logits"], features(teacher, "logits")["logits"])
    theirs = {parameter.data_ptr() for parameter in teacher.parameters()}
    assert not theirs & {parameter.data_ptr() for parameter in student.parameters()}


@pytest.mark.parametrize(
    ("family", "more"),
    [
        (family, {**own, **more})
        for family in KINDS
        for own in ({}, {"architecture": "bert"})
        for more in ({}, NARROW)
        if not (own and family in WHOLE_LAYERS)
    ],
)
def test_it_has_the_sizes_that_are_planned(family: str, more: dict[str, Any]):
    teacher, wanted = teacher_of(family), card(2, **more)
    planned, student = sizes(wanted, teacher), built(wanted, teacher)
    assert planned.architecture == more.get("architecture", family)
    assert dimensions(student.config.to_dict(), classes=len(LABELS)) == planned
    assert student.num_parameters() == planned.parameters
    assert student.get_input_embeddings().weight.numel() == planned.word_parameters


@FAMILIES
def test_its_encoder_starts_as_its_classifiers(family: str):
    """The general stage trains the encoder, the task stage the classifier."""
    teacher, wanted = teacher_of(family), card(2)
    encoder: Any = build_encoder(wanted, teacher.base_model, sizes(wanted, teacher)).eval()
    for mine, other in zip(hidden(encoder, 2), hidden(built(wanted, teacher), 2), strict=True):
        assert torch.equal(mine, other)


@BY_PARTS
@pytest.mark.parametrize("architecture", [{}, "bert"])
def test_its_graph_gives_its_logits(family: str, architecture: Any, tmp_path: Path):
    teacher = teacher_of(family)
    student = built(card(2, architecture=architecture), teacher)
    graph = build_fast(student, opset=20, unpadded=False)
    assert graph is not None
    write_model(graph, tmp_path / "model.onnx")
    session = open_session(tmp_path / "model.onnx", threads=1)
    inputs = {value.name: batch()[value.name].numpy() for value in session.get_inputs()}
    logits = np.asarray(session.run(["logits"], inputs)[0])
    np.testing.assert_allclose(
        logits, features(student, "logits")["logits"].numpy(), atol=5e-6
    )  # fp32 sums in another order


# fp32: word + (position + segment), in another order; embeddings behind a projection are only approximated in BERT's form
AS_BERT = {"bert": 0.0, "electra": None}
AS_BERT |= dict.fromkeys(("roberta", "xlm-roberta", "camembert", "distilbert", "ernie"), 1e-5)


@pytest.mark.parametrize(("family", "near"), list(AS_BERT.items()))
def test_as_a_bert_with_all_layers_it_has_its_teachers_states(family: str, near: float | None):
    teacher = teacher_of(family, **({"embedding_size": 32} if near is None else {}))
    pairs = zip(hidden(built(card(architecture="bert"), teacher), 4), hidden(teacher, 4), strict=True)
    for mine, theirs in pairs:
        torch.testing.assert_close(mine, theirs, rtol=0, atol=near or 0.0)


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "camembert", "ernie", "albert"])
def test_a_head_of_the_same_form_passes_to_a_bert(family: str):
    teacher = teacher_of(family)
    student = built(card(architecture="bert"), teacher)
    if family == "albert":  # its states are only approximated
        mine, theirs = student.bert.pooler.dense, teacher.albert.pooler
        assert torch.equal(mine.weight, theirs.weight)
        assert torch.equal(student.classifier.weight, teacher.classifier.weight)
    else:
        expected = features(teacher, "logits")["logits"]
        torch.testing.assert_close(features(student, "logits")["logits"], expected, rtol=0, atol=1e-5)  # fp32, as above


@pytest.mark.parametrize("family", ["albert", "electra"])
def test_tables_behind_a_matrix_come_near_their_teachers(family: str):
    """Closer than the same tables without the fit of the LayerNorm, and than random ones."""
    teacher = teacher_of(family)
    mine, theirs = (hidden(model, 0)[0] for model in (built(card(architecture="bert"), teacher), teacher))
    left = (mine - theirs).square().sum() / (theirs - theirs.mean(0)).square().sum()
    assert left < 0.2


CONVERTED = [family for family in KINDS if family not in ("albert", *WHOLE_LAYERS)]
TABLES = ("bert", "roberta", "mpnet")  # forms of positions: from 0, after padding, relative


@pytest.mark.parametrize("family", keeping([*CONVERTED, "mpnet"], ("bert", "mpnet")))
def test_an_albert_as_wide_in_all_with_all_layers_is_its_teacher(family: str):
    """Up to LayerNorm's epsilon, which is at another place: tables without their mean have one dimension less."""
    teacher = teacher_of(family)
    width = dimensions(teacher.config.to_dict(), classes=3).embedding
    wanted = card(4, architecture="albert", init="convert", albert={"embedding": width, "share": "none"})
    student: Any = build_student(wanted, teacher, sizes(wanted, teacher), batches(1, 8, 90)).eval()
    assert student.num_parameters() == sizes(wanted, teacher).parameters
    errors = [float((a - b).abs().max()) for a, b in zip(hidden(student, 4), hidden(teacher, 4), strict=True)]
    assert max(errors) < 1e-3 or family == "mpnet"  # no ALBERT has MPNet's relative-position bias
    assert errors[0] < 1e-3


@pytest.mark.parametrize("family", [*TABLES, *slow(*(name for name in CONVERTED if name not in TABLES))])
def test_a_block_that_is_fitted_is_nearer_than_the_mean(family: str):
    teacher, cosines = teacher_of(family), {}
    for block in ("fit", "mean"):
        albert = {"embedding": 8, "block": block}
        wanted = card(2, architecture="albert", init="convert", albert=albert)
        student = build_student(wanted, teacher, sizes(wanted, teacher), batches(1, 8, 90)).eval()
        cosine = torch.cosine_similarity(hidden(student, 2)[-1], hidden(teacher, 4)[-1], dim=-1)
        cosines[block] = float(cosine.mean())
    assert cosines["fit"] > cosines["mean"]


def test_an_albert_is_not_converted_to_its_own_form():
    wanted = card(2, architecture="albert", init="convert", albert={"embedding": 8})
    with pytest.raises(
        CompressError, match="ALBERT's form, which the teacher already has; choose one that repeats its layers less"
    ):
        sizes(wanted, teacher_of("albert"))


def test_tables_are_not_made_wider():
    wanted = card(2, architecture="albert", init="convert", albert={"embedding": 17})
    with pytest.raises(CompressError, match=r"albert\.embedding is 17 and that of the teacher's tables 16"):
        sizes(wanted, teacher_of("electra"))


@pytest.mark.parametrize(("groups", "layers", "copied"), [(1, 3, [0, 0, 0]), (2, 2, [0, 1]), (4, 2, [0, 3])])
def test_an_alberts_blocks_are_repeated_as_often_as_its_layers_say(groups: int, layers: int, copied: list[int]):
    teacher = teacher_of("albert", num_hidden_groups=groups)
    student = built(card(layers), teacher)
    mine, theirs = (model.albert.encoder.albert_layer_groups for model in (student, teacher))
    assert len(mine) == len(set(copied))
    for layer, block in enumerate(copied):
        own = mine[layer * len(mine) // layers].albert_layers[0]
        assert torch.equal(own.ffn.weight, theirs[block].albert_layers[0].ffn.weight)


def test_blocks_that_no_albert_repeats_are_refused():
    with pytest.raises(CompressError, match=r"student s: its 3 layers would run blocks \[0, 1, 1\] of the teacher"):
        sizes(card(3), teacher_of("albert", num_hidden_groups=2))


SEGMENTS = "student s: a DistilBERT has no segment embeddings: the first segment's is added to the positions, the second's is dropped"
MATRIX = "student s: embeddings 16 wide behind a matrix become tables 32 wide that approximate them"
POSITIONS = (
    "student s: positions are counted from 0: the teacher's first 2 rows, which belong to no token, are left out"
)
TASK_TYPES = "student s: a BERT has no task-type embeddings: the first type's, which all texts here have, is added to the positions"
HEAD = "student s: the classifier's first layer is the teacher's with {} in place of {}"


@pytest.mark.parametrize(
    ("family", "architecture", "lines"),
    [
        ("bert", {}, []),
        ("bert", {"bert": "distilbert"}, [SEGMENTS, HEAD.format("relu", "tanh")]),
        ("roberta", {"bert": "distilbert"}, []),
        ("roberta", "bert", [POSITIONS]),
        ("distilbert", "bert", [HEAD.format("tanh", "relu")]),
        ("mpnet", "bert", [POSITIONS, "student s: attention has no values for the distance of two tokens"]),
        ("ernie", {}, []),
        ("ernie", "bert", [TASK_TYPES]),
        ("electra", "bert", [MATRIX, HEAD.format("tanh", "gelu")]),
        ("albert", "bert", [MATRIX, "student s: each layer has weights of its own, where the teacher's 4 share 1"]),
    ],
)
def test_what_is_not_kept_is_said(family: str, architecture: Any, lines: list[str]):
    teacher, wanted = teacher_of(family), card(2, architecture=architecture)
    both = {"teacher": dimensions(teacher.config.to_dict(), classes=3), "student": sizes(wanted, teacher)}
    notes = not_kept(wanted.of(family), both)
    assert [note.startswith(line) for note, line in zip(notes, lines, strict=True)] == [True] * len(lines)
    assert not_kept(wanted.model_copy(update={"init": "random"}), both) == ()


def test_a_distilbert_says_that_it_has_an_epsilon_of_its_own():
    teacher, wanted = teacher_of("bert"), card(2, architecture="distilbert")
    both = {"teacher": dimensions(teacher.config.to_dict(), classes=3), "student": sizes(wanted, teacher)}
    usual, other = ({**teacher.config.to_dict(), "layer_norm_eps": value} for value in (1e-12, 1e-5))
    kept, lost = (not_kept(wanted, both, epsilon=layer_norm_epsilon(config)) for config in (usual, other))
    assert lost == (
        *kept,
        "student s: its LayerNorm adds 1e-12 to variances, where the teacher's adds 1e-05 (layer_norm_eps)",
    )
    bert = card(2)
    both["student"] = sizes(bert, teacher)
    assert not_kept(bert.of("bert"), both, epsilon=1e-5) == ()


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "camembert", "ernie"])
def test_a_projected_student_is_of_the_teachers_family(family: str):
    teacher = teacher_of(family)
    narrow = card(2, init="project", hidden=16, intermediate=24)
    assert sizes(narrow, teacher).architecture == family
    with pytest.raises(CompressError, match=f"a projected student is of the teacher's family, {family}"):
        sizes(card(2, init="project", architecture="bert"), teacher)


@pytest.mark.parametrize(
    ("name", "teacher", "student"),
    [
        ("distilbert-6l", "bert", "distilbert"),
        ("distilbert-6l", "distilbert", "distilbert"),
        ("distilbert-6l", "roberta", "roberta"),
        ("distilbert-6l", "mpnet", "mpnet"),
        ("distilbert-6l", "ernie", "ernie"),
        ("tinybert-6l-768", "bert", "bert"),
        ("tinybert-6l-768", "electra", "electra"),
        ("tinybert-4l-312", "camembert", "bert"),
        ("albert-12x768", "xlm-roberta", "albert"),
    ],
)
def test_a_card_is_of_the_family_that_it_says_or_of_the_teachers(name: str, teacher: str, student: str):
    student_card = load_student(name).of(teacher)
    assert student_card.architecture == student
    assert student_card.of("bert") is student_card
    assert {**student_card.model_dump(), "architecture": None} == {
        **load_student(name).model_dump(),
        "architecture": None,
    }


@pytest.mark.parametrize(
    ("title", "spoken"),
    [("MPNet", "an MPNet"), ("ModernBERT", "a ModernBERT"), ("BERT", "a BERT"), ("ALBERT", "an ALBERT")],
)
def test_families_are_spoken_of_with_their_article(title: str, spoken: str) -> None:
    assert with_article(title) == spoken
