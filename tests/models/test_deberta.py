"""DeBERTa-v3: the config.json fields it reads, its sizes in every form, and students that copy its layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from family_teachers import LABELS
from plain_teachers import LAYERS, plain_classifier, plain_teacher
from torch.utils.flop_counter import FlopCounterMode

from compress.errors import CompressError
from compress.models.cards import StudentCard
from compress.models.dimensions import Dimensions, dimensions, read_config
from compress.models.features.named import accepted_inputs, compute_features
from compress.models.students import build_student, not_kept, student_dimensions

FORMS = {  # of both families
    "deberta-v3": ("deberta-v2", {}),
    "own matrices for positions": ("deberta-v2", {"share_att_key": False}),
    "no buckets": ("deberta-v2", {"position_buckets": -1}),
    "near distances alone": ("deberta-v2", {"position_buckets": -1, "max_relative_positions": 10}),
    "positions and segments in the input": ("deberta-v2", {"position_biased_input": True, "type_vocab_size": 2}),
    "xlnet": ("xlnet", {}),
}
EVERY = pytest.mark.parametrize(("family", "fields"), list(FORMS.values()), ids=list(FORMS))


@EVERY
def test_parameters_and_flops_are_those_of_transformers(family: str, fields: dict[str, Any]):
    model, length = plain_classifier(family, **fields), 20
    sizes = dimensions(model.config.to_dict(), classes=len(LABELS))
    assert sizes.parameters == sum(parameter.numel() for parameter in model.parameters())
    inputs = {name: torch.ones(1, length, dtype=torch.int64) for name in accepted_inputs(model)}
    with FlopCounterMode(display=False) as counter:
        model(**inputs)
    assert sizes.flops_per_example(length) == counter.get_total_flops()
    assert str(sizes) == f"{LAYERS} x 32, 2 heads, FFN 64"


def card(layers: int, **more: Any) -> StudentCard:
    return StudentCard(**{"name": "s", "title": "S", "layers": layers, **more}).of("deberta-v2")


def sizes_of(model: Any) -> Dimensions:
    return dimensions(model.config.to_dict(), classes=len(LABELS))


def logits(model: Any) -> torch.Tensor:
    ids = torch.arange(5, 29).reshape(2, 12)
    mask = torch.tensor([[1] * 12, [1] * 7 + [0] * 5])
    batch = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    with torch.no_grad():
        return compute_features(model, batch, ("logits",))["logits"]


DEBERTAS = pytest.mark.parametrize(
    "fields", [fields for family, fields in FORMS.values() if family == "deberta-v2"], ids=list(FORMS)[:-1]
)


@DEBERTAS
def test_with_all_layers_a_student_is_its_teacher(fields: dict[str, Any]):
    teacher = plain_classifier("deberta-v2", **fields)
    student = build_student(card(LAYERS), teacher, student_dimensions(card(LAYERS), sizes_of(teacher))).eval()
    assert torch.equal(logits(student), logits(teacher))


@DEBERTAS
@pytest.mark.parametrize("init", ["copy", "random"])
def test_with_fewer_it_has_the_sizes_that_are_planned(fields: dict[str, Any], init: str):
    teacher, wanted = plain_classifier("deberta-v2", **fields), card(2, init=init)
    planned = student_dimensions(wanted, sizes_of(teacher))
    student: Any = build_student(wanted, teacher, planned)
    assert sizes_of(student) == planned
    assert student.num_parameters() == planned.parameters
    assert not_kept(wanted, {"student": planned, "teacher": sizes_of(teacher)}) == ()
    same = torch.equal(student.deberta.encoder.rel_embeddings.weight, teacher.deberta.encoder.rel_embeddings.weight)
    assert same == (init == "copy")
    theirs = teacher.deberta.encoder.layer[LAYERS - 1].output.dense.weight
    assert torch.equal(student.deberta.encoder.layer[1].output.dense.weight, theirs) == (init == "copy")


V3 = "that of DeBERTa-v3 and -v2; other forms of its attention are not supported"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("conv_kernel_size", 3, "none: the convolution of DeBERTa-v2-xlarge and -xxlarge is not supported"),
        ("relative_attention", False, f"true: {V3}"),
        ("relative_attention", None, f"true: {V3}"),
        ("pos_att_type", ["c2p"], rf"p2c\|c2p: {V3}"),
        ("pos_att_type", None, rf"p2c\|c2p: {V3}"),
        ("norm_rel_ebd", "none", f"layer_norm: {V3}"),
        ("norm_rel_ebd", None, f"layer_norm: {V3}"),
        ("type_vocab_size", None, "a whole number from 0 to 1024"),
    ],
)
def test_other_forms_are_refused_by_name(key: str, value: Any, expected: str, tmp_path: Path):
    """If a key is missing (None), transformers' default is not the published form."""
    folder = plain_teacher("deberta-v2", tmp_path)
    path = folder / "config.json"
    changed = {**json.loads(path.read_text()), key: value}
    path.write_text(json.dumps({name: item for name, item in changed.items() if item is not None}))
    with pytest.raises(CompressError, match=rf"config\.json: {key}: expected {expected}; found"):
        read_config(folder)


def test_published_spellings_are_taken(tmp_path: Path):
    folder = plain_teacher("deberta-v2", tmp_path)
    path = folder / "config.json"
    published = {"pos_att_type": "p2c|c2p", "pooler_hidden_size": 32, "attention_head_size": 16, "conv_kernel_size": 0}
    path.write_text(json.dumps({**json.loads(path.read_text()), **published}))
    assert read_config(folder)["pos_att_type"] == "p2c|c2p"
