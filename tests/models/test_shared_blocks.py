"""Shared blocks in a trained and a saved ALBERT."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from albert_toys import bert, blocks, card, converted, sizes, text
from safetensors import safe_open
from transformers import AutoModel, AutoModelForSequenceClassification

from compress.models.students import build_encoder, build_student, load_body

SHARED = [card(), card(groups=2)]
every_sharing = pytest.mark.parametrize("student", SHARED, ids=["all", "groups"])


@pytest.fixture(scope="module")
def teacher() -> Any:
    return bert()


def saved(model: Any, folder: Path) -> set[str]:
    model.save_pretrained(folder)
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        return set(file.keys())


@every_sharing
def test_an_encoder_comes_back_and_brings_a_classifier_its_body(teacher: Any, tmp_path: Path, student: Any):
    encoder = AutoModel.from_config(teacher.config)
    encoder.load_state_dict(teacher.bert.state_dict())
    built: Any = build_encoder(student, encoder, sizes(student, teacher), [text()])
    saved(built, tmp_path)
    again, said = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(said.values())
    whole: Any = build_student(student, teacher, sizes(student, teacher), None).eval()
    load_body(whole, tmp_path)
    with torch.no_grad():
        mine, theirs = (model.eval()(**text()).last_hidden_state for model in (whole.base_model, again))
    assert torch.equal(mine, theirs)


@every_sharing
def test_what_layers_share_is_saved_once(teacher: Any, tmp_path: Path, student: Any):
    built = converted(student, teacher)
    names = saved(built, tmp_path)
    assert len(names) == len(list(built.parameters()))  # torch counts each of these once
    assert built.num_parameters() == sizes(student, teacher).parameters
    floats = 4 * built.num_parameters()
    assert floats < (tmp_path / "model.safetensors").stat().st_size < floats + 200 * len(names)  # names and shapes


@every_sharing
def test_sharing_survives_training(teacher: Any, tmp_path: Path, student: Any):
    built = converted(student, teacher).train()
    before = {name: parameter.detach().clone() for name, parameter in built.named_parameters()}
    optimizer = torch.optim.AdamW(built.parameters(), lr=1e-2)
    for seed in (1, 2):
        optimizer.zero_grad()
        built(**text(seed), labels=torch.arange(8) % 3).loss.backward()
        optimizer.step()
    after = dict(built.named_parameters())
    assert after.keys() == before.keys()
    moved = [name for name in after if "albert_layer_groups" in name and not torch.equal(after[name], before[name])]
    assert len(moved) == sum("albert_layer_groups" in name for name in after)
    saved(built, tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert again.num_parameters() == sizes(student, teacher).parameters
    with torch.no_grad():
        assert torch.equal(again.eval()(**text()).logits, built.eval()(**text()).logits)


@every_sharing
def test_a_shared_weight_has_one_gradient_the_sum_over_its_uses(teacher: Any, student: Any):
    shared = converted(student, teacher)
    apart = card(share="none")
    untied: Any = build_student(apart, teacher, sizes(apart, teacher), None).eval()
    own = {name: tensor for name, tensor in shared.state_dict().items() if "albert_layer_groups" not in name}
    untied.load_state_dict(own, strict=False)
    groups = len(blocks(shared))
    used = [blocks(shared)[number * groups // 4] for number in range(4)]
    for block, source in zip(blocks(untied), used, strict=True):
        block.load_state_dict(copy.deepcopy(source.state_dict()))
    for model in (shared, untied):
        model(**text(), labels=torch.arange(8) % 3).loss.backward()
    sums: dict[int, Any] = {}
    for block, source in zip(blocks(untied), used, strict=True):
        for (name, mine), theirs in zip(block.named_parameters(), source.parameters(), strict=True):
            assert mine.grad is not None, name
            sums[id(theirs)] = sums.get(id(theirs), 0) + mine.grad
    for parameter in {id(p): p for block in used for p in block.parameters()}.values():
        # fp32: four gradients summed in another order
        torch.testing.assert_close(parameter.grad, sums[id(parameter)], rtol=1e-4, atol=1e-6)
