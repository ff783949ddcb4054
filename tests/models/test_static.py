"""Static models: means against a loop, features of pairs, sizes, checkpoints; what a card may say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tokenizers import Tokenizer
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, AutoModelForSequenceClassification

from compress.errors import CompressError
from compress.models.cards import StudentCard, load_student
from compress.models.checkpoints import load_classifier, save_checkpoint
from compress.models.dimensions import Dimensions, dimensions, read_config
from compress.models.pretrained import transformers_config
from compress.models.students import student_dimensions

CLS, SEP, PAD = 2, 3, 0
FIELDS: dict[str, Any] = {"vocab_size": 30, "hidden_size": 8, "intermediate_size": 6, "max_position_embeddings": 20}
FIELDS |= {"special_token_ids": [PAD, CLS, SEP, 4], "separator_token_id": SEP, "pad_token_id": PAD, "num_labels": 3}


def model_of(texts: int, **fields: Any) -> Any:
    torch.manual_seed(1)
    config = transformers_config({"model_type": "static", **FIELDS, "texts": texts, **fields})
    return AutoModelForSequenceClassification.from_config(config).eval()


def batch(*rows: list[int]) -> dict[str, torch.Tensor]:
    longest = max(map(len, rows))
    padded = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return {"input_ids": padded, "attention_mask": mask}


def mean(model: Any, tokens: list[int]) -> torch.Tensor:
    """By a loop."""
    total = torch.zeros(8)
    for token in tokens:
        total += model.static.word_embeddings.weight[token]
    return total / max(1, len(tokens))


def test_a_text_is_the_mean_of_its_tokens_and_no_other() -> None:
    model = model_of(1)
    rows = [[CLS, 7, 9, 7, SEP], [CLS, SEP], [CLS, 11, 4, SEP]]
    with torch.no_grad():
        found = model.static(**batch(*rows)).pooler_output
        expected = [mean(model, tokens) for tokens in ([7, 9, 7], [], [11])]
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-6, rtol=0)  # sums of three
    assert not found[1].any()


def test_of_a_pair_the_layer_reads_both_means_their_difference_and_their_product() -> None:
    model = model_of(2)
    rows = [[CLS, 7, 9, SEP, 8, SEP], [CLS, 7, SEP, SEP], [CLS, SEP, 5, 6, SEP], [CLS, 7, SEP, SEP, 8, SEP]]
    with torch.no_grad():
        found = model.static(**batch(*rows)).pooler_output
        for row, (first, second) in zip(found, (([7, 9], [8]), ([7], []), ([], [5, 6]), ([7], [8])), strict=True):
            u, v = mean(model, first), mean(model, second)
            torch.testing.assert_close(row, torch.cat([u, v, (u - v).abs(), u * v]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("texts", [1, 2])
def test_padding_changes_nothing(texts: int) -> None:
    model, row = model_of(texts), [CLS, 7, 9, SEP, 8, SEP]
    with torch.no_grad():
        alone, beside = (model(**batch(*rows)).logits[0] for rows in ([row], [row, [*row, *range(5, 15)]]))
    torch.testing.assert_close(alone, beside, atol=1e-6, rtol=0)  # a longer sum, of zeros


@pytest.mark.parametrize("texts", [1, 2])
def test_parameters_are_those_of_the_model(texts: int, tmp_path: Path, toy_tokenizer: Tokenizer) -> None:
    model = model_of(texts, vocab_size=64)
    save_checkpoint(model, toy_tokenizer, tmp_path)
    sizes = dimensions(read_config(tmp_path), classes=3)
    assert sizes.parameters == model.num_parameters()
    assert (sizes.layers, sizes.hidden, sizes.embedding_parameters) == (0, 8, 64 * 8)
    with FlopCounterMode(display=False) as counter:
        model(**batch([CLS, 7, 9, SEP, *range(5, 10), SEP]))
    assert sizes.flops_per_example(10) == counter.get_total_flops()
    assert str(sizes) == "table 64 x 8, FFN 6"


def test_a_checkpoint_is_loaded_with_its_weights(tmp_path: Path, toy_tokenizer: Tokenizer) -> None:
    model = model_of(1, vocab_size=64)
    save_checkpoint(model, toy_tokenizer, tmp_path)
    again: Any = load_classifier(tmp_path, kind="classification", labels=("no", "maybe", "yes"), trained=True)
    assert type(again) is type(model)
    assert again.config.id2label == {0: "no", 1: "maybe", 2: "yes"}
    inputs = batch([CLS, 7, 9, SEP])
    with torch.no_grad():
        assert torch.equal(again.eval()(**inputs).logits, model(**inputs).logits)
        assert torch.equal(
            AutoModel.from_pretrained(tmp_path)(**inputs).pooler_output, model.static(**inputs).pooler_output
        )


def test_a_config_with_other_values_is_refused(tmp_path: Path, toy_tokenizer: Tokenizer) -> None:
    save_checkpoint(model_of(1), toy_tokenizer, tmp_path)
    config = tmp_path / "config.json"
    whole = config.read_text()
    config.write_text(whole.replace('"texts": 1', '"texts": 3'))
    with pytest.raises(CompressError, match="texts: expected a whole number from 1 to 2; found 3"):
        read_config(tmp_path)
    config.write_text(whole.replace('"special_token_ids": [', '"special_token_ids": [-1, '))
    with pytest.raises(CompressError, match="special_token_ids: expected a list of at most 64 token numbers"):
        read_config(tmp_path)
    with pytest.raises(CompressError, match="a static has one vector for a text, and a task of kind tagging"):
        dimensions({**FIELDS, "model_type": "static"}, classes=3, kind="tagging")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": 2}, "layers: a `static` has no layers; leave it out"),
        ({"heads": 2}, "heads: a `static` has no layers; leave it out"),
        ({"init": "copy"}, "init: expected one of `static`, `random` for a student `static`; found `copy`"),
        ({"init": "random", "static": {"rarity": 0.1}}, "`static` and `init: static` come together"),
        ({"architecture": "bert", "layers": 2}, "for a student `bert`; found `static`"),
    ],
)
def test_a_card_that_means_nothing_is_refused(fields: dict[str, Any], message: str) -> None:
    card: dict[str, Any] = {"name": "mine", "title": "Mine", "architecture": "static", "init": "static"}
    with pytest.raises(ValidationError, match=message):
        StudentCard.model_validate({**card, **fields})


def sizes_of(**fields: Any) -> Dimensions:
    config = {
        "model_type": "bert",
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    return dimensions(config | {"intermediate_size": 64, "max_position_embeddings": 24}, classes=2, **fields)


def test_it_is_no_wider_than_its_teacher() -> None:
    card = load_student("static-256")
    found = student_dimensions(card, sizes_of(), texts=2)
    assert (found.hidden, found.intermediate, found.layers, found.positions) == (32, 256, 0, 24)
    assert found.parameters == 100 * 32 + (4 * 32 + 1) * 256 + 257 * 2
    random = card.model_copy(update={"init": "random"})
    assert student_dimensions(random, sizes_of()).hidden == 256


def test_a_task_of_words_and_a_teacher_without_layers_are_refused() -> None:
    card = load_student("static-256")
    with pytest.raises(
        CompressError, match="student static-256 has one vector for a text, and the task asks of its tokens"
    ):
        student_dimensions(card, sizes_of(kind="tagging"))
    static = dimensions({**FIELDS, "model_type": "static"}, classes=2)
    with pytest.raises(
        CompressError, match="student static-256 takes the states of its teacher's tokens, and a static has none"
    ):
        student_dimensions(card, static)
