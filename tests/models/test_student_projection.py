"""Projected students: equal to the teacher at its own width, and close to it below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import slow
from text_batches import batches
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from compress.models.cards import StudentCard
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import Dimensions, dimensions
from compress.models.families import FAMILIES
from compress.models.features.named import accepted_inputs
from compress.models.students import algebra, build_encoder, build_student, student_dimensions
from compress.models.students.activations import observe

families = pytest.mark.parametrize("family", ["bert", *slow("mpnet", "ernie")])
LABELS = ("no", "maybe", "yes")
RANK = 9


def states(model: Any, texts: list[dict[str, Any]]) -> list[np.ndarray]:
    """Return the hidden states [real token, size] of every layer."""
    body = model.base_model
    norms = [body.embeddings.LayerNorm, *(layer.output.LayerNorm for layer in body.encoder.layer)]
    return list(observe(body, texts, {str(i): (norm, "out") for i, norm in enumerate(norms)}).values())


def card(**fields: Any) -> StudentCard:
    return StudentCard(**{"name": "s", "title": "S", "architecture": "bert", "layers": 2, "init": "project", **fields})


def sizes(student: StudentCard, teacher: Any) -> Dimensions:
    return student_dimensions(student, dimensions(teacher.config.to_dict(), classes=3))


@pytest.fixture(scope="module")
def structured() -> Any:
    return structured_teacher("bert")


def structured_teacher(family: str) -> Any:
    """Return a teacher of width 32 whose hidden states stay near a subspace of `RANK` dimensions."""
    torch.manual_seed(11)
    shape = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2}
    shape |= {"intermediate_size": 48, "max_position_embeddings": 24, "num_labels": 3}
    shape |= {"use_task_id": True} if family == "ernie" else {}
    teacher: Any = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(family, **shape)).eval()
    parts = FAMILIES[family].layers.parts
    subspace = torch.linalg.qr(torch.randn(32, RANK))[0]
    onto = subspace @ subspace.T
    with torch.no_grad():
        for table in (
            module for module in teacher.base_model.embeddings.modules() if isinstance(module, torch.nn.Embedding)
        ):
            table.weight.copy_((table.weight + torch.randn_like(table.weight)) @ onto)
        for layer in teacher.base_model.encoder.layer:
            for linear in (module for module in layer.modules() if isinstance(module, torch.nn.Linear)):
                linear.weight.add_(torch.randn_like(linear.weight) * 0.1)
            for dense in (layer.get_submodule(parts["output"]), layer.get_submodule(parts["down"])):
                dense.weight.copy_(onto @ dense.weight)
    return teacher


@families
def test_at_full_width_the_student_is_the_teacher(tiny_checkpoint: Callable[[str], Path], family: str):
    """Every part is included: embeddings, heads, neurons, norms, pooler and classifier."""
    teacher = load_classifier(tiny_checkpoint(family), kind="classification", labels=LABELS, trained=True).train()
    same = card(architecture=family)
    student = build_student(same, teacher, sizes(same, teacher), batches(1, 5))
    assert teacher.training
    for mine, theirs in zip(states(student, batches(2, 2)), states(teacher, batches(2, 2)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-5)  # fp32; gains are refitted per layer
    names = accepted_inputs(teacher)
    text = {name: torch.from_numpy(array) for name, array in batches(3, 1)[0].items() if name in names}
    with torch.no_grad():
        expected = teacher.eval()(**text).logits
        torch.testing.assert_close(student.eval()(**text).logits, expected, rtol=0, atol=2e-5)


def nearness(student: Any, teacher: Any, basis: np.ndarray, layers: tuple[int, ...]) -> list[float]:
    """Return the cosine of the student's hidden states to the teacher's in the basis, per layer, averaged over unseen tokens."""
    texts = batches(9, 3)
    below = states(teacher, texts)
    cosines = []
    for mine, layer in zip(states(student, texts), (0, *(layer + 1 for layer in layers)), strict=True):
        theirs = below[layer] @ basis
        lengths = np.linalg.norm(mine, axis=1) * np.linalg.norm(theirs, axis=1)
        cosines.append(float(((mine * theirs).sum(1) / lengths).mean()))
    return cosines


def test_a_projected_student_is_near_its_teacher_and_a_random_one_is_not(
    structured: Any, monkeypatch: pytest.MonkeyPatch
):
    narrow = {"hidden": 16, "intermediate": 32, "copy_layers": (1, 3)}
    bases = []
    original = algebra.shared_basis
    monkeypatch.setattr(algebra, "shared_basis", lambda *arguments: bases.append(original(*arguments)) or bases[0])
    students: dict[str, Any] = {}
    for init in ("project", "random"):
        student = card(init=init, **narrow)
        torch.manual_seed(0)
        students[init] = build_student(student, structured, sizes(student, structured), batches(4, 15)).eval()
    projected, random = (nearness(students[init], structured, bases[0], (1, 3)) for init in ("project", "random"))
    assert projected[0] > 0.99
    assert min(projected) > 0.9
    assert max(random) < 0.5
    assert students["project"].bert.pooler.dense.weight.shape == (16, 16)


@families
def test_the_classes_of_a_projected_student_are_those_of_its_teacher(family: str):
    teacher = structured_teacher(family)
    student = card(architecture=family, layers=4, hidden=16, intermediate=32)
    built = build_student(student, teacher, sizes(student, teacher), batches(4, 15)).eval()
    names = accepted_inputs(teacher)
    texts = [{name: torch.from_numpy(text[name]) for name in names} for text in batches(9, 5)]
    with torch.no_grad():
        mine, theirs = (torch.cat([model(**text).logits for text in texts]) for model in (built, teacher))
    pairs = torch.stack([(mine - mine.mean(0)).flatten(), (theirs - theirs.mean(0)).flatten()])
    assert torch.corrcoef(pairs)[0, 1] > 0.8


def test_projection_is_the_same_again_whatever_the_seed(structured: Any):
    student = card(hidden=16, intermediate=32)
    first, second = (build_student(student, structured, sizes(student, structured), batches(4, 5)) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))


@families
def test_an_encoder_is_projected_without_a_classifier(tiny_checkpoint: Callable[[str], Path], family: str):
    teacher, same = AutoModel.from_pretrained(tiny_checkpoint(family)), card(architecture=family)
    student = build_encoder(same, teacher, sizes(same, teacher), batches(1, 5))
    for mine, theirs in zip(states(student, batches(2, 2)), states(teacher, batches(2, 2)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-5)  # fp32, as above


def test_padding_never_changes_what_is_observed(structured: Any):
    norm = {"states": (structured.bert.encoder.layer[-1].output.LayerNorm, "out")}
    (text,) = batches(5, 1)
    longer = {name: np.pad(array, ((0, 0), (0, 3))) for name, array in text.items()}
    observations = [observe(structured.bert, [batch], norm)["states"] for batch in (text, longer)]
    assert len(observations[0]) == text["attention_mask"].sum()
    np.testing.assert_allclose(observations[0], observations[1], rtol=0, atol=1e-5)  # fp32
