"""XLNet for batches padded on the right: the same logits as transformers gives with padding on the left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from family_teachers import LABELS
from plain_teachers import plain_classifier, plain_teacher, plain_tokenizer
from transformers import AutoTokenizer

from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier, load_tokenizer
from compress.models.dimensions import read_config
from compress.models.features.named import accepted_inputs, compute_features
from compress.tasks import Split, collate, encode

TEXTS = ["the film is good", "the acting is not good and the story is bad .", "bad"]


def batch(lengths: list[int], seed: int = 0) -> dict[str, Any]:
    """Return pairs padded on the right, with segments 0, 1, and 2 for the last token, as the tokenizer does."""
    rng, longest = torch.Generator().manual_seed(seed), max(lengths)
    ids = torch.randint(7, 90, (len(lengths), longest), generator=rng)
    mask = (torch.arange(longest) < torch.tensor(lengths)[:, None]).long()
    types = (torch.arange(longest) >= torch.tensor(lengths)[:, None] // 2).long()
    for row, length in enumerate(lengths):
        types[row, length - 1] = 2
    return {"input_ids": ids * mask + 5 * (1 - mask), "attention_mask": mask, "token_type_ids": types * mask}


def padded_left(inputs: dict[str, Any]) -> dict[str, Any]:
    counts = inputs["attention_mask"].sum(1).tolist()
    return {
        name: torch.stack([row.roll(len(row) - count) for row, count in zip(rows, counts, strict=True)])
        for name, rows in inputs.items()
    }


def of_transformers(model: Any) -> Any:
    theirs = transformers.XLNetForSequenceClassification(model.config).eval()
    theirs.load_state_dict(model.state_dict())
    return theirs


def logits(model: Any, inputs: dict[str, Any]) -> torch.Tensor:
    with torch.no_grad():
        return model(**inputs).logits


@pytest.mark.parametrize("lengths", [[9], [9, 4, 1], [2, 17, 17, 5], [31, 30, 8]])
@pytest.mark.parametrize("fields", [{}, {"clamp_len": 3}])
def test_either_side_gives_the_logits_of_transformers_padded_on_the_left(lengths: list[int], fields: dict[str, Any]):
    model, inputs = plain_classifier("xlnet", **fields), batch(lengths)
    expected = logits(of_transformers(model), padded_left(inputs))
    for tensors in (inputs, padded_left(inputs)):
        torch.testing.assert_close(logits(model, tensors), expected, rtol=0, atol=2e-6)  # fp32 sums in another order


def test_transformers_alone_gives_others_on_the_right():
    model, inputs = plain_classifier("xlnet"), batch([9, 4])
    apart = (logits(of_transformers(model), inputs) - logits(model, inputs)).abs().max(1).values
    assert apart[0] < 1e-6  # the longest has no padding
    assert apart[1] > 1e-2


def test_what_stands_in_the_padding_has_no_say():
    model, inputs = plain_classifier("xlnet"), batch([12, 5, 7])
    other = {**inputs, "input_ids": inputs["input_ids"] + 11 * (1 - inputs["attention_mask"])}
    other["token_type_ids"] = inputs["token_type_ids"] + 3 * (1 - inputs["attention_mask"])
    torch.testing.assert_close(logits(model, other), logits(model, inputs), rtol=0, atol=1e-6)


def test_a_loaded_checkpoint_is_ours_and_a_saved_one_transformers(tmp_path: Path):
    """transformers' own model and tokenizer give the same outputs, since the tokenizer's settings pad on the left."""
    folder = plain_teacher("xlnet", tmp_path, trained=True)
    ours: Any = load_classifier(folder, kind="classification", labels=LABELS, trained=True)
    assert accepted_inputs(ours) == {"input_ids", "attention_mask", "token_type_ids"}
    assert json.loads((folder / "config.json").read_text())["architectures"] == ["XLNetForSequenceClassification"]
    tokenizer = load_tokenizer(folder)
    encoded = encode(tokenizer, Split((TEXTS,), torch.zeros(len(TEXTS)).long().numpy()), 16)
    arrays = collate(encoded, torch.arange(len(TEXTS)).numpy(), 5)
    inputs = {name: torch.from_numpy(arrays[name]) for name in accepted_inputs(ours)}
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    encoding = AutoTokenizer.from_pretrained(folder)(
        TEXTS, padding=True, truncation=True, max_length=16, return_tensors="pt"
    )
    assert encoding["input_ids"][2, 0] == 5  # padding comes first
    torch.testing.assert_close(logits(ours.eval(), inputs), logits(theirs, dict(encoding)), rtol=0, atol=2e-6)  # fp32


def test_the_toy_tokenizer_ends_a_text_as_xlnets_does():
    encoding = plain_tokenizer("xlnet").encode(TEXTS[0])
    assert encoding.tokens[-2:] == ["<sep>", "<cls>"]
    assert encoding.type_ids[-2:] == [0, 2]


def test_hidden_states_are_given_and_attention_is_refused():
    model, inputs = plain_classifier("xlnet"), batch([9, 4])
    assert compute_features(model, inputs, ("hidden[1]",))["hidden[1]"].shape == (2, 9, 32)
    with pytest.raises(CompressError, match=r"the attention of a xlnet cannot be read"):
        compute_features(model, inputs, ("scores[0]",))


def test_it_trains_on_padded_batches():
    model = plain_classifier("xlnet").train()
    model(**batch([9, 4])).logits.square().sum().backward()
    assert all(p.grad is not None for name, p in model.named_parameters() if "mask_emb" not in name)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("attn_type", "uni", "bi: one that reads in one direction is not supported"),
        ("bi_data", True, "false: batches that are half reversed are not supported"),
        ("summary_type", "mean", "last: a classifier on another token is not supported"),
        ("summary_use_proj", False, "true: a classifier without a projection is not supported"),
        ("summary_activation", "relu", "tanh: another is not supported"),
    ],
)
def test_other_forms_are_refused_by_name(key: str, value: Any, expected: str, tmp_path: Path):
    folder = plain_teacher("xlnet", tmp_path)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(CompressError, match=rf"config\.json: {key}: expected {expected}; found"):
        read_config(folder)
