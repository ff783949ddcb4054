"""Sizes computed from config.json, against the models that transformers builds from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForSequenceClassification

from compress.errors import CompressError
from compress.models.dimensions import dimensions, read_config

FAMILIES = ["bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie"]


def eager(folder: Path) -> Any:
    return AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()


@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_are_those_of_the_model(tiny_checkpoint: Callable[[str], Path], family: str):
    folder = tiny_checkpoint(family)
    sizes = dimensions(read_config(folder), classes=3)
    parameters = dict(eager(folder).named_parameters())
    assert sizes.parameters == sum(p.numel() for p in parameters.values())
    tables = [p.numel() for name, p in parameters.items() if "embedding" in name]
    assert sizes.embedding_parameters == sum(tables)
    assert str(sizes) == "2 x 32, 2 heads, FFN 64"


@pytest.mark.parametrize("family", FAMILIES)
def test_flops_are_those_of_the_matrix_products(tiny_checkpoint: Callable[[str], Path], family: str):
    folder, length = tiny_checkpoint(family), 20
    sizes = dimensions(read_config(folder), classes=3)
    with FlopCounterMode(display=False) as counter:
        eager(folder)(input_ids=torch.full((1, length), 7))
    assert sizes.flops_per_example(length) == counter.get_total_flops()
    assert sizes.flops_per_token(length) * length == pytest.approx(sizes.flops_per_example(length))


@pytest.mark.parametrize("inner", [1, 2])
def test_albert_projects_embeddings_of_any_size_and_shares_its_layers(inner: int):
    config = AutoConfig.for_model(
        "albert", vocab_size=50, embedding_size=32, hidden_size=32, num_attention_heads=2, intermediate_size=64,
        num_hidden_layers=5, num_hidden_groups=2, inner_group_num=inner, num_labels=3,
    )  # fmt: skip
    sizes = dimensions(config.to_dict(), classes=3)
    model: Any = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
    assert sizes.parameters == model.num_parameters()
    with FlopCounterMode(display=False) as counter:
        model.eval()(input_ids=torch.full((1, 9), 7))
    assert sizes.flops_per_example(9) == counter.get_total_flops()


@pytest.mark.parametrize("family", ["albert", "electra"])
def test_narrow_embeddings_are_as_wide_as_transformers_has_them_where_config_json_does_not_say(family: str):
    config: Any = AutoConfig.for_model(family, hidden_size=192, num_attention_heads=2, num_labels=3)
    model: Any = AutoModelForSequenceClassification.from_config(config)
    said = {name: value for name, value in config.to_dict().items() if name != "embedding_size"}
    assert dimensions(said, classes=3).parameters == model.num_parameters()


BERT = {
    "model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 64, "vocab_size": 50, "max_position_embeddings": 24,
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in BERT if name != "model_type"])
@pytest.mark.parametrize("value", [None, "many"])
def test_a_size_that_is_missing_or_no_number(name: str, value: str | None):
    config = {**BERT, name: value} if value else {key: BERT[key] for key in BERT if key != name}
    problem = (
        "the sizes of a bert are whole numbers: .*'many'" if value else "a size that a bert needs is missing: .*[a-z]"
    )
    with pytest.raises(CompressError, match=f"^config.json: {problem}"):
        dimensions(config, classes=2)


def test_the_folder_of_a_training_names_the_checkpoints_in_it(tmp_path: Path):
    for name in ("checkpoint-100", "checkpoint-50", "logs"):
        (tmp_path / name).mkdir()
    for name in ("checkpoint-100", "checkpoint-50"):
        (tmp_path / name / "config.json").write_text("{}")
    with pytest.raises(CompressError, match=r"checkpoint folder; there is one in checkpoint-100, checkpoint-50$"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file; expected a transformers checkpoint folder"),
        ("{", "cannot be read"),
        ("[]", "expected a JSON object, found list"),
        (json.dumps({"model_type": "gpt2"}), "model_type: expected one of bert, .*; found 'gpt2'"),
        ("{}", "found None"),
    ],
)
def test_a_config_that_cannot_be_used(tmp_path: Path, text: str | None, message: str):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(CompressError, match=message) as caught:
        read_config(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'config.json'}: ")
    assert "\n" not in str(caught.value)
