"""A BERT converted to ALBERT: the same model if nothing must be lost; its parts are tested elsewhere."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from albert_toys import EMBEDDING, bert, blocks, card, converted, sizes, text
from default_suite import slow
from text_batches import batches
from transformers import AlbertForSequenceClassification, AutoModel, AutoModelForSequenceClassification

from compress.models.dimensions import dimensions
from compress.models.families import FAMILIES
from compress.models.students import build_encoder, build_student
from compress.models.students.build import student_config
from compress.models.students.conversion import convert
from compress.models.students.fitting import repeats

# Modules of an AlbertLayer, and those of a BertLayer.
MODULES = [(module, FAMILIES["bert"].layers.parts[part]) for part, module in FAMILIES["albert"].layers.parts.items()]
# fp32: BERT and ALBERT round differently in one LayerNorm, at width 32 or 8, by about 1e-6 for states near 10, and every layer
# passes that on. A neuron taken twice or a lost head costs more than 1e-2 here.
EXACT = {"rtol": 0, "atol": 5e-5}

LOSSLESS = [
    card(block="fit"),
    card(block="mean"),
    card(block=[2]),
    card(groups=2, block="fit"),
    card(groups=2, block="mean"),
    card(groups=2, block=[3, 0]),
    card(share="none", block="fit"),
    card(2, block="fit"),
]


def student_id(student: Any) -> str:
    share = student.albert
    return f"{student.layers}-{share.share}-{share.groups}-{share.block}"


@pytest.fixture(scope="module")
def teacher() -> Any:
    """Return a BERT whose layers all differ."""
    return bert()


@pytest.mark.parametrize("student", LOSSLESS, ids=student_id)
def test_layers_that_are_alike_and_flat_tables_lose_nothing(student: Any):
    """Each repeat replaces one layer of the teacher; with as many repeats as layers, the outputs are equal."""
    teacher = bert(layers=student.layers, alike=True, rank=EMBEDDING - 1)
    built = converted(student, teacher)
    batch = text()
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        mine, theirs = (model(**batch, output_hidden_states=True) for model in (built, teacher))
    torch.testing.assert_close(mine.logits, theirs.logits, **EXACT)
    for own, other in zip(mine.hidden_states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(own[real], other[real], **EXACT)
    assert theirs.logits.std() > 0.1  # texts differ in their logits


@pytest.mark.parametrize("student", [card(), *slow(card(groups=2), card(share="none"))], ids=student_id)
def test_conversion_is_the_same_again_whatever_the_seed(teacher: Any, student: Any):
    states = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        states.append(converted(student, teacher).state_dict())
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def same(block: Any, layer: Any) -> bool:
    return all(
        torch.equal(block.get_submodule(mine).weight, layer.get_submodule(theirs).weight)
        and torch.equal(block.get_submodule(mine).bias, layer.get_submodule(theirs).bias)
        for mine, theirs in MODULES
    )


def test_blocks_that_are_not_shared_are_the_teachers_bit_by_bit(teacher: Any):
    built = converted(card(share="none", block="mean"), teacher)
    layers = teacher.bert.encoder.layer
    assert all(same(block, layer) for block, layer in zip(blocks(built), layers, strict=True))


def test_a_named_layer_is_copied_for_each_block(teacher: Any):
    built = converted(card(groups=2, block=[3, 1]), teacher)
    for block, layer in zip(blocks(built), (3, 1), strict=True):
        assert same(block, teacher.bert.encoder.layer[layer])


def test_the_mean_is_that_of_the_layers_a_block_stands_for(teacher: Any):
    (block,), layers = blocks(converted(card(block="mean"), teacher)), teacher.bert.encoder.layer
    wanted = torch.stack([layer.attention.self.key.weight.double() for layer in layers]).mean(0).float()
    assert torch.equal(block.attention.key.weight, wanted)
    for number, block in enumerate(blocks(converted(card(groups=2, block="mean"), teacher))):
        pair = [layers[2 * number + more].output.dense.weight.double() for more in (0, 1)]
        assert torch.equal(block.ffn_output.weight, torch.stack(pair).mean(0).float())


@pytest.mark.parametrize(
    ("layers", "groups", "covered"),
    [(4, 1, [(0, 0), (1, 1), (2, 2), (3, 3)]), (2, 1, [(0, 1), (2, 3)]), (3, 3, [(0, 0), (1, 2), (3, 3)])],
)
def test_repeats_deal_out_the_teachers_layers(teacher: Any, layers: int, groups: int, covered: list[tuple[int, int]]):
    built = converted(card(layers, groups=groups), teacher)
    passes = repeats(built.albert, teacher_layers=4)
    assert [(each.first, each.last) for each in passes] == covered
    assert len({id(each.layer) for each in passes}) == groups
    assert built(**text()).logits.isfinite().all()


def test_fewer_repeats_than_layers_each_stand_for_several(teacher: Any):
    built = converted(card(2, share="none", block="mean"), teacher)
    layers = teacher.bert.encoder.layer
    for number, block in enumerate(blocks(built)):
        pair = [layers[2 * number + more].intermediate.dense.weight.double() for more in (0, 1)]
        assert torch.equal(block.ffn.weight, torch.stack(pair).mean(0).float())


def test_the_head_is_the_teachers(teacher: Any):
    built = converted(card(), teacher)
    assert torch.equal(built.albert.pooler.weight, teacher.bert.pooler.dense.weight)
    assert torch.equal(built.classifier.weight, teacher.classifier.weight)
    assert torch.equal(built.classifier.bias, teacher.classifier.bias)


def test_without_a_sample_the_head_alone_is_filled(teacher: Any):
    """For a student whose body comes from an encoder checkpoint."""
    students = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        students.append(build_student(card(), teacher, sizes(card(), teacher), None))
    one, other = (model.state_dict() for model in students)
    assert torch.equal(one["classifier.weight"], other["classifier.weight"])
    assert torch.equal(one["albert.pooler.weight"], other["albert.pooler.weight"])
    name = "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"
    assert not torch.equal(one[name], other[name])


def test_conversion_leaves_the_modes_of_both_as_they_were(teacher: Any):
    student = AutoModelForSequenceClassification.from_config(student_config(teacher.config, sizes(card(), teacher)))
    for model in (teacher, student):
        model.train()
    convert(student, teacher, card().albert, batches(1, 2))  # pyright: ignore[reportArgumentType]
    assert all(module.training for model in (teacher, student) for module in model.modules())
    teacher.eval()


def test_an_encoder_is_converted_as_the_classifiers_body_is(teacher: Any):
    encoder = AutoModel.from_config(teacher.config)
    encoder.load_state_dict(teacher.bert.state_dict())
    alone = build_encoder(card(), encoder, sizes(card(), teacher), batches(1, 8)).state_dict()
    body = converted(card(), teacher).albert.state_dict()
    assert alone.keys() == body.keys()
    assert all(torch.equal(alone[name], body[name]) for name in body)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_converted_student_is_a_checkpoint_of_transformers(teacher: Any, tmp_path: Path, groups: int):
    built = converted(card(groups=groups), teacher)
    built.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == "albert"
    assert config["architectures"] == ["AlbertForSequenceClassification"]
    assert config["num_hidden_groups"] == groups
    again, said = AutoModelForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert type(again) is AlbertForSequenceClassification
    assert "compress" not in (inspect.getsourcefile(type(again)) or "")
    assert not any(said.values())
    with torch.no_grad():
        assert torch.equal(again.eval()(**text()).logits, built(**text()).logits)
    assert dimensions(config, classes=3) == sizes(card(groups=groups), teacher)


@pytest.mark.parametrize(("own", "wanted"), [(None, 0.2), (0.4, 0.4)])
def test_the_classifiers_dropout_is_the_teachers_and_outlives_tying(own: float | None, wanted: float):
    """A config made from an ALBERT's, as by a stage that ties its layers, has the same dropout."""
    teacher = bert(layers=2, hidden_dropout_prob=0.2, classifier_dropout=own)
    config = student_config(teacher.config, sizes(card(2), teacher))
    assert config.classifier_dropout_prob == wanted
    assert student_config(config, sizes(card(2), teacher)).classifier_dropout_prob == wanted
