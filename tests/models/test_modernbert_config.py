"""ModernBERT's published config, configs that mean another model, and a checkpoint without a head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from family_teachers import LABELS, teacher_of

from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier, load_encoder, load_tokenizer
from compress.models.dimensions import read_config, usable_positions

PUBLISHED = {  # names as in the hub's config.json of ModernBERT-base, written by transformers 4
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "local_rope_theta": 10000.0,
    "layer_norm_eps": 1e-05,
    "position_embedding_type": "absolute",
    "reference_compile": None,
    "torch_dtype": "float32",
}


def published(folder: Path, **fields: Any) -> Path:
    """Return a checkpoint whose config.json has the hub's fields."""
    teacher_of("modernbert", folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for name in ("layer_types", "rope_parameters"):
        del config[name]
    path.write_text(json.dumps(config | PUBLISHED | fields))
    return folder


def test_the_published_config_is_read_as_transformers_reads_it(tmp_path: Path):
    folder = published(tmp_path / "t", global_rope_theta=5e4, global_attn_every_n_layers=2)
    encoder: Any = load_encoder(folder)
    assert encoder.config.layer_types == ["full_attention", "sliding_attention"] * 2
    thetas = {kind: parameters["rope_theta"] for kind, parameters in encoder.config.rope_parameters.items()}
    assert thetas == {"full_attention": 5e4, "sliding_attention": 1e4}
    assert usable_positions(read_config(folder)) == 32


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layer_types": ["full_attention", "linear_attention"]}, "layer_types: expected for each layer one of full_"),
        ({"layer_types": ["full_attention"]}, "cannot be loaded as an encoder"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 1e4}}},
            "rope_parameters: expected rope_theta for each of full_attention, sliding_attention, with rope_type: default",
        ),
        ({"local_attention": "128"}, "local_attention: expected a whole number from 2 to"),
        ({"attention_bias": 1}, "attention_bias: expected true or false; found 1"),
        ({"classifier_pooling": "max"}, "classifier_pooling: expected one of cls, mean; found 'max'"),
    ],
)
def test_a_config_that_means_another_model_is_refused(tmp_path: Path, fields: dict[str, Any], message: str):
    with pytest.raises(CompressError) as caught:
        load_encoder(published(tmp_path / "t", **fields))
    assert message in str(caught.value)


def test_a_head_may_be_new_and_nothing_else(tmp_path: Path):
    folder = teacher_of("modernbert", tmp_path / "encoder")
    model: Any = load_classifier(folder, kind="classification", labels=LABELS, trained=False)
    assert model.config.num_labels == len(LABELS)
    with pytest.raises(CompressError, match=r"lacks 4 of the model's weights"):
        load_classifier(folder, kind="classification", labels=LABELS, trained=True)
    assert load_tokenizer(folder).encode("a", "b").tokens[0] == "[CLS]"
