"""config.json is read by a table: fields of the family are kept, others are dropped, wrong values are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification
from transformers.activations import ACT2FN

from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import read_config
from compress.models.families import FAMILIES
from compress.models.families.fields import ACTIVATIONS

LABELS = ("no", "maybe", "yes")
# Keys of one published checkpoint per family, beside its sizes.
PUBLISHED: dict[str, dict[str, Any]] = {
    "bert": {
        "gradient_checkpointing": False,
        "position_embedding_type": "absolute",
        "transformers_version": "4.6.0.dev0",
        "use_cache": True,
        "torch_dtype": "float32",
        "output_past": True,
        "directionality": "bidi",
        "pooler_fc_size": 768,
        "pooler_type": "first_token_transform",
        "pruned_heads": {},
        "is_decoder": False,
    },
    "distilbert": {
        "finetuning_task": "sst-2",
        "output_past": True,
        "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2,
        "sinusoidal_pos_embds": False,
        "tie_weights_": True,
    },
    "roberta": {"bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-05, "problem_type": None},
    "electra": {
        "summary_activation": "gelu",
        "summary_last_dropout": 0.1,
        "summary_type": "first",
        "summary_use_proj": True,
        "classifier_dropout": None,
    },
    "albert": {
        "attention_probs_dropout_prob": 0,
        "hidden_dropout_prob": 0,
        "down_scale_factor": 1,
        "gap_size": 0,
        "net_structure_type": 0,
        "num_memory_blocks": 0,
        "layers_to_keep": [],
    },
    "mpnet": {
        "bos_token_id": 0,
        "eos_token_id": 2,
        "layer_norm_eps": 1e-05,
        "relative_attention_num_buckets": 32,
        "gradient_checkpointing": False,
    },
    "ernie": {"layer_norm_eps": 1e-05, "task_type_vocab_size": 3, "use_task_id": True, "use_cache": True},
}


def changed(source: Path, target: Path, **values: Any) -> Path:
    shutil.copytree(source, target)
    path = target / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    return target


def answers(model: Any) -> torch.Tensor:
    ids = torch.tensor([[5, 9, 60, 33, 8], [7, 7, 12, 99, 2]])
    with torch.no_grad():
        return model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids)).logits


@pytest.mark.parametrize("family", list(PUBLISHED))
def test_a_published_checkpoint_is_the_model_that_transformers_makes_of_it(
    tiny_checkpoint: Callable[[str], Path], tmp_path: Path, family: str
):
    folder = changed(tiny_checkpoint(family), tmp_path / "teacher", **PUBLISHED[family])
    ours: Any = load_classifier(folder, kind="classification", labels=LABELS, trained=True)
    theirs = AutoModelForSequenceClassification.from_pretrained(folder)
    assert torch.equal(answers(ours), answers(theirs))
    mine, other = ours.config.to_dict(), theirs.config.to_dict()
    dropped = {*PUBLISHED[family]} - {*FAMILIES[family].fields}
    assert dropped.isdisjoint(mine.keys() - AutoConfig.for_model(family).to_dict().keys())
    same = mine.keys() & other.keys() - {"problem_type", "_name_or_path"}
    assert {name: mine[name] for name in same} == {name: other[name] for name in same}


@pytest.mark.parametrize("family", ["xlm-roberta", "camembert"])
def test_the_other_names_of_roberta(tiny_checkpoint: Callable[[str], Path], tmp_path: Path, family: str):
    folder = changed(tiny_checkpoint("roberta"), tmp_path / "teacher", model_type=family, output_past=True)
    (folder / "config.json").write_text((folder / "config.json").read_text().replace('"pad_token_id": 1, ', ""))
    assert read_config(folder)["pad_token_id"] == 1
    theirs = AutoModelForSequenceClassification.from_pretrained(folder)
    assert torch.equal(
        answers(load_classifier(folder, kind="classification", labels=LABELS, trained=True)), answers(theirs)
    )


def test_what_travels_is_in_the_table(tiny_checkpoint: Callable[[str], Path], tmp_path: Path):
    hostile = {
        "auto_map": {"AutoModelForSequenceClassification": "owner/repo--modeling.Evil"},
        "_attn_implementation": "owner/repo:function",
        "attn_implementation": "owner/repo",
        "fusion_config": {"patch_embeddings": True},
        "transformers_weights": "../secret.safetensors",
        "per_layer_config": {"0": {"hidden_act": "relu"}},
        "rope_parameters": "x",
        "name_or_path": "/home/somebody",
        "unknown": ["x"],
    }
    folder = changed(tiny_checkpoint("bert"), tmp_path / "teacher", **hostile)
    assert hostile.keys().isdisjoint(read_config(folder))
    model: Any = load_classifier(folder, kind="classification", labels=LABELS, trained=True)
    assert model.config._attn_implementation == "sdpa"
    model.save_pretrained(tmp_path / "copy")
    written = json.loads((tmp_path / "copy" / "config.json").read_text())
    assert written.keys() <= FAMILIES["bert"].fields.keys() | AutoConfig.for_model("bert").to_dict().keys() | {
        "model_type"
    }
    assert not [text for text in ("owner", "somebody", "secret") if text in json.dumps(written)]


REFUSED: list[tuple[str, Any, str]] = [
    ("hidden_size", "768", "a whole number from 1 to 131072; found '768'"),
    ("hidden_size", 768.0, "a whole number from 1"),
    ("hidden_size", True, "a whole number from 1"),
    ("hidden_size", -1, "a whole number from 1"),
    ("intermediate_size", 1e308, "a whole number from 1 to 131072; found 1e+308"),
    ("num_hidden_layers", 10**9, "a whole number from 1 to 1024; found 1000000000"),
    ("vocab_size", [], "a whole number from 1"),
    ("hidden_dropout_prob", 1.5, "a number from 0 to 1; found 1.5"),
    ("hidden_dropout_prob", float("nan"), "a number from 0 to 1; found nan"),
    ("layer_norm_eps", {"a": 1}, "a number from 0 to 1"),
    ("hidden_act", "owner/repo:gelu", "one of gelu, "),
    ("hidden_act", ["gelu"], "one of gelu, "),
    ("architectures", "BertModel", "a list of names; found 'BertModel'"),
    ("architectures", ["../x"], "a list of names"),
    ("id2label", {"0": {}}, "names for the ids 0, 1, 2"),
    ("problem_type", 3, "one of regression, single_label"),
    ("position_embedding_type", "relative_key", "one of absolute; found 'relative_key'"),
    ("is_decoder", True, "false: decoders are not supported; found True"),
    ("is_encoder_decoder", 1, "false: decoders are not supported; found 1"),
    ("pruned_heads", {"0": [1]}, "none: a checkpoint with all its heads"),
    ("quantization_config", [], "none: weights in float32"),
    ("quantization_config", {"quant_method": "gptq"}, "none: weights in float32"),
    ("torch_dtype", "int8", "one of float32, "),
    ("pad_token_id", 120, "less than vocab_size, 120; found 120"),
    ("model_type", ["bert"], "one of bert, distilbert"),
]


@pytest.mark.parametrize(
    ("name", "value", "expected"), REFUSED, ids=[f"{name}-{at}" for at, (name, *_) in enumerate(REFUSED)]
)
def test_a_wrong_value_is_refused_by_file_and_key(
    tiny_checkpoint: Callable[[str], Path], tmp_path: Path, name: str, value: Any, expected: str
):
    folder = changed(tiny_checkpoint("bert"), tmp_path / "teacher", **{name: value})
    with pytest.raises(CompressError) as caught:
        read_config(folder)
    assert str(caught.value).startswith(f"{folder / 'config.json'}: {name}: expected {expected}")
    assert len(str(caught.value)) < 600


def test_sizes_that_no_weights_are_there_for_take_no_memory(tiny_checkpoint: Callable[[str], Path], tmp_path: Path):
    folder = changed(tiny_checkpoint("bert"), tmp_path / "teacher", hidden_size=1 << 17, intermediate_size=1 << 17)
    with pytest.raises(
        CompressError, match=r"config\.json: expected the sizes of the model that the weights belong to: a"
    ):
        load_classifier(folder, kind="classification", labels=LABELS, trained=False)


def test_null_stands_for_a_missing_key(tiny_checkpoint: Callable[[str], Path], tmp_path: Path):
    nothing = dict.fromkeys(("hidden_act", "layer_norm_eps", "id2label", "quantization_config", "pruned_heads"))
    config = read_config(changed(tiny_checkpoint("bert"), tmp_path / "teacher", **nothing, pad_token_id=None))
    assert nothing.keys().isdisjoint(config)
    assert config["pad_token_id"] is None


def test_activations_are_those_that_transformers_has():
    assert set(ACTIVATIONS) <= set(ACT2FN)
    assert not [
        name for name in ACTIVATIONS if list(ACT2FN[name].parameters())
    ]  # a checkpoint would have to hold their parameters
