"""Static models: means and windows against loops, features of pairs, sentence embeddings, sizes, checkpoints; what a card may
set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from tokenizers import Tokenizer
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification

from compress.errors import CompressError
from compress.models.cards import StudentCard, load_student
from compress.models.checkpoints.folders import load_classifier, save_checkpoint
from compress.models.checkpoints.pretrained import transformers_config
from compress.models.dimensions import Dimensions, dimensions, read_config
from compress.models.features.named import compute_features
from compress.models.student_forms import Static
from compress.models.students import student_dimensions

CLS, SEP, PAD = 2, 3, 0
FIELDS: dict[str, Any] = {"vocab_size": 30, "hidden_size": 8, "intermediate_size": 6, "max_position_embeddings": 20}
FIELDS |= {"special_token_ids": [PAD, CLS, SEP, 4], "separator_token_id": SEP, "pad_token_id": PAD, "num_labels": 3}


def model_of(texts: int, **fields: Any) -> Any:
    torch.manual_seed(1)
    config = transformers_config({"model_type": "static", **FIELDS, "texts": texts, **fields})
    return AutoModelForSequenceClassification.from_config(config).eval()


def tagger_of(window: int, **fields: Any) -> Any:
    torch.manual_seed(2)
    config = transformers_config({"model_type": "static", **FIELDS, "window": window, **fields})
    return AutoModelForTokenClassification.from_config(config).eval()


def encoder_of(**fields: Any) -> Any:
    torch.manual_seed(3)
    config = transformers_config({"model_type": "static", **FIELDS, "sentence_pooling": "mean", **fields})
    return AutoModel.from_config(config).eval()


def batch(*rows: list[int]) -> dict[str, torch.Tensor]:
    longest = max(map(len, rows))
    padded = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return {"input_ids": padded, "attention_mask": mask}


def mean(model: Any, tokens: list[int]) -> torch.Tensor:
    """Return the mean row of the tokens, computed in a loop."""
    total = torch.zeros(8)
    for token in tokens:
        total += model.static.word_embeddings.weight[token]
    return total / max(1, len(tokens))


def test_a_text_is_the_mean_of_its_tokens_and_no_other() -> None:
    model = model_of(1)
    rows = [[CLS, 7, 9, 7, SEP], [CLS, SEP], [CLS, 11, 4, SEP]]
    with torch.no_grad():
        vectors = model.static(**batch(*rows)).pooler_output
        expected = [mean(model, tokens) for tokens in ([7, 9, 7], [], [11])]
    torch.testing.assert_close(vectors, torch.stack(expected), atol=1e-6, rtol=0)  # sums of three
    assert not vectors[1].any()


def test_of_a_pair_the_layer_reads_both_means_their_difference_and_their_product() -> None:
    model = model_of(2)
    rows = [[CLS, 7, 9, SEP, 8, SEP], [CLS, 7, SEP, SEP], [CLS, SEP, 5, 6, SEP], [CLS, 7, SEP, SEP, 8, SEP]]
    with torch.no_grad():
        vectors = model.static(**batch(*rows)).pooler_output
        for row, (first, second) in zip(vectors, (([7, 9], [8]), ([7], []), ([], [5, 6]), ([7], [8])), strict=True):
            u, v = mean(model, first), mean(model, second)
            torch.testing.assert_close(row, torch.cat([u, v, (u - v).abs(), u * v]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("texts", [1, 2])
def test_padding_changes_nothing(texts: int) -> None:
    model, row = model_of(texts), [CLS, 7, 9, SEP, 8, SEP]
    with torch.no_grad():
        alone, beside = (model(**batch(*rows)).logits[0] for rows in ([row], [row, [*row, *range(5, 15)]]))
    torch.testing.assert_close(alone, beside, atol=1e-6, rtol=0)  # a longer sum, with zeros


def labelled(model: Any, tokens: list[int], window: int) -> np.ndarray:
    """Return [token, label] of one text, computed in a loop over its tokens in float64."""
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    table, logits = weights["static.word_embeddings.weight"], []
    words = [np.zeros(8) if token in FIELDS["special_token_ids"] else table[token] for token in tokens]
    for place in range(len(tokens)):
        near = range(place - window, place + window + 1)
        read = np.concatenate([words[at] if 0 <= at < len(words) else np.zeros(8) for at in near])
        hidden = np.maximum(weights["pre_classifier.weight"] @ read + weights["pre_classifier.bias"], 0)
        logits.append(weights["classifier.weight"] @ hidden + weights["classifier.bias"])
    return np.array(logits)


@pytest.mark.parametrize("window", [0, 1, 2])
def test_a_token_is_labelled_by_its_vector_and_its_neighbours(window: int) -> None:
    model = tagger_of(window)
    rows = [[CLS, 7, 9, 7, 5, 11, SEP], [CLS, SEP], [CLS, 11, 4, 8, SEP]]
    with torch.no_grad():
        outputs = model(**batch(*rows)).logits
    assert outputs.shape == (3, 7, 3)
    for row, logits in zip(rows, outputs, strict=True):
        np.testing.assert_allclose(logits[: len(row)], labelled(model, row, window), atol=1e-5)  # fp32 sums of 40


def test_padding_is_no_neighbour() -> None:
    model, row = tagger_of(2), [CLS, 7, 9, SEP]
    inputs = batch(row, [*row, *range(5, 12)])
    inputs["input_ids"][0, len(row) :] = 9  # the mask excludes these tokens
    with torch.no_grad():
        alone, beside = model(**batch(row)).logits[0], model(**inputs).logits[0, : len(row)]
    torch.testing.assert_close(alone, beside, atol=1e-6, rtol=0)


def test_a_vector_of_a_text_points_where_the_mean_of_its_words_does() -> None:
    model = encoder_of()
    rows = [[CLS, 7, 9, 7, SEP], [CLS, SEP], [CLS, 11, 4, SEP]]
    with torch.no_grad():
        vectors = compute_features(model, batch(*rows), ["logits"])["logits"].numpy()
        states = model(**batch(*rows)).last_hidden_state
    table = model.word_embeddings.weight.detach().double().numpy()
    for vector, tokens in zip(vectors, ([7, 9, 7], [], [11]), strict=True):
        summed = table[tokens].sum(0)
        expected = summed / np.linalg.norm(summed) if tokens else np.zeros(8)
        np.testing.assert_allclose(vector, expected, atol=1e-6)
    assert not states[0, [0, 4]].any() and torch.equal(states[0, 2], model.word_embeddings.weight[9])


def test_of_a_tagger_the_parameters_and_flops_are_the_model_s(tmp_path: Path, toy_tokenizer: Tokenizer) -> None:
    model = tagger_of(2, vocab_size=64)
    save_checkpoint(model, toy_tokenizer, tmp_path)
    sizes = dimensions(read_config(tmp_path), classes=3, kind="tagging")
    assert (sizes.parameters, str(sizes)) == (model.num_parameters(), "table 64 x 8, FFN 6")
    with FlopCounterMode(display=False) as counter:
        model(**batch([CLS, *range(5, 13), SEP]))
    means = 2 * 10 * 8  # nothing reads them, and no graph computes them
    assert sizes.flops_per_example(10) == counter.get_total_flops() - means


def test_a_sentence_encoder_is_its_table(tmp_path: Path, toy_tokenizer: Tokenizer) -> None:
    model = encoder_of(vocab_size=64)
    save_checkpoint(model, toy_tokenizer, tmp_path)
    sizes = dimensions(read_config(tmp_path), classes=0, kind="embedding")
    assert sizes.parameters == model.num_parameters() == 64 * 8 and str(sizes) == "table 64 x 8"
    assert sizes.flops_per_example(10) == 2 * 10 * 8
    again: Any = load_classifier(tmp_path, kind="embedding", labels=(), trained=True)
    inputs = batch([CLS, 7, 9, SEP])
    with torch.no_grad():
        assert torch.equal(*(compute_features(each, inputs, ["logits"])["logits"] for each in (again.eval(), model)))


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
    config.write_text(whole.replace('"window": 0', '"window": 9'))
    with pytest.raises(CompressError, match="window: expected a whole number from 0 to 8; found 9"):
        read_config(tmp_path)
    with pytest.raises(
        CompressError, match="a static has no layer that combines question and context, and a task of kind span"
    ):
        dimensions({**FIELDS, "model_type": "static"}, classes=2, kind="span")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": 2}, "layers: a `static` has no layers; leave it out"),
        ({"heads": 2}, "heads: a `static` has no layers; leave it out"),
        ({"init": "copy"}, "init: expected one of `static`, `random` for a student `static`; found `copy`"),
        ({"init": "random", "static": {"rarity": 0.1}}, "`static` and `init: static` belong together"),
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
    sizes = student_dimensions(card, sizes_of(), texts=2)
    assert (sizes.hidden, sizes.intermediate, sizes.layers, sizes.positions) == (32, 256, 0, 24)
    assert sizes.parameters == 100 * 32 + (4 * 32 + 1) * 256 + 257 * 2
    random = card.model_copy(update={"init": "random"})
    assert student_dimensions(random, sizes_of()).hidden == 256


def test_a_tagger_reads_as_many_neighbours_as_its_card_says() -> None:
    card = load_student("static-256")
    assert dict(student_dimensions(card, sizes_of(kind="tagging")).own) == {"texts": 1, "window": 2}
    alone = card.model_copy(update={"static": Static(window=0)})
    assert student_dimensions(alone, sizes_of(kind="tagging")).own["window"] == 0
    assert student_dimensions(card, sizes_of(kind="classification")).own["window"] == 0


def test_a_task_of_questions_and_a_teacher_without_layers_are_refused() -> None:
    card = load_student("static-256")
    with pytest.raises(CompressError, match="student static-256 has no layer that combines question and context"):
        student_dimensions(card, sizes_of(kind="span"), texts=2)
    static = dimensions({**FIELDS, "model_type": "static"}, classes=2)
    with pytest.raises(
        CompressError, match="student static-256 takes the states of its teacher's tokens, and a static has none"
    ):
        student_dimensions(card, static)
