"""ERNIE's task type embeddings: models made from it contain only the row of type 0, if it has any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import LABELS, classifier_of, tokenizer_of

from compress.errors import CompressError
from compress.export import export_onnx
from compress.export.fast.reading import read_encoder
from compress.models.cards import StudentCard
from compress.models.checkpoints.folders import save_checkpoint
from compress.models.dimensions import dimensions, read_config
from compress.models.students import build_student, student_dimensions

TASK: dict[str, Any] = {"opset": 20, "task_name": "toy", "labels": LABELS, "kind": "classification"}
FORMS: dict[str, dict[str, Any]] = {
    "three task types": {},
    "none": {"use_task_id": False},
    "as ERNIE 3.0": {"task_type_vocab_size": 16, "type_vocab_size": 4},
}
VARIANTS = pytest.mark.parametrize("fields", FORMS.values(), ids=FORMS)
GRAPHS = [  # torch's exporter is slow
    pytest.param(fields, graph, id=f"{graph}, {name}", marks=[pytest.mark.slow] if graph == "plain" else [])
    for graph in ("plain", "fast")
    for name, fields in FORMS.items()
]


def as_transformers_counts(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@VARIANTS
def test_its_sizes_are_those_of_transformers(fields: dict[str, Any]):
    model = classifier_of("ernie", **fields)
    sizes = dimensions(model.config.to_dict(), classes=len(LABELS))
    assert sizes.parameters == as_transformers_counts(model)
    tables = [p.numel() for name, p in model.named_parameters() if "embedding" in name]
    assert sizes.embedding_parameters == sum(tables)


@pytest.mark.parametrize(("fields", "graph"), GRAPHS)
def test_its_graphs_give_its_logits(fields: dict[str, Any], graph: str, tmp_path: Path):
    """`export_onnx` compares them, padded and unpadded, for pairs and for single texts."""
    model = classifier_of("ernie", **fields)
    model.config.id2label, model.config.label2id = dict(enumerate(LABELS)), {name: i for i, name in enumerate(LABELS)}
    save_checkpoint(model, tokenizer_of("ernie"), tmp_path / "teacher")
    for pairs in (True, False):
        info = export_onnx(tmp_path / "teacher", tmp_path, graph=graph, pairs=pairs, **TASK)
        errors = [*info["parity_max_abs_error"].values(), *info["unpadded_parity_max_abs_error"].values()]
        assert max(errors) < 1e-5  # fp32 sums in another order
        assert len(errors) == (8 if graph == "fast" else 4)


def test_the_row_of_type_0_is_in_the_positions_of_the_fast_graph():
    model = classifier_of("ernie")
    embeddings, encoder = model.ernie.embeddings, read_encoder(model)
    assert encoder is not None
    rows = embeddings.position_embeddings.weight + embeddings.task_type_embeddings.weight[0]
    np.testing.assert_allclose(encoder.positions, rows.detach().numpy(), atol=1e-7)  # one rounding
    assert not torch.equal(rows, embeddings.position_embeddings.weight)


@pytest.mark.parametrize("init", ["copy", "random"])
@pytest.mark.parametrize("fields", [{}, {"use_task_id": False}])
def test_its_student_has_task_types_where_it_has_them(init: Any, fields: dict[str, Any]):
    teacher = classifier_of("ernie", **fields)
    card = StudentCard(name="s", title="S", layers=2, init=init).of("ernie")
    student: Any = build_student(
        card, teacher, student_dimensions(card, dimensions(teacher.config.to_dict(), classes=3))
    )
    assert student.config.use_task_id == teacher.config.use_task_id
    assert hasattr(student.ernie.embeddings, "task_type_embeddings") == teacher.config.use_task_id


def test_a_wrong_number_of_task_types_is_refused(tmp_path: Path):
    model = classifier_of("ernie")
    model.config.task_type_vocab_size = 0
    save_checkpoint(model, tokenizer_of("ernie"), tmp_path)
    with pytest.raises(CompressError, match=r"config\.json: task_type_vocab_size: expected a whole number from 1"):
        read_config(tmp_path)
