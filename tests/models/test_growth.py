"""A grown BERT computes what the small one does, and its copies do not stay equal."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertModel

from compress.errors import CompressError
from compress.models.dimensions import dimensions
from compress.models.growth import check_growth, grow

SMALL = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
REST = {
    "vocab_size": 60,
    "max_position_embeddings": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
WIDE = [
    {"hidden_size": 32, "num_attention_heads": 4},
    {"hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 50},
    {"intermediate_size": 64},
    {"max_position_embeddings": 40},
]


def config(**changes: int) -> BertConfig:
    return BertConfig(**{**REST, **SMALL, **changes, "initializer_range": 0.2})


def model(kind: Any, **changes: int) -> Any:
    torch.manual_seed(0)
    network = kind(config(**changes)).eval()
    with torch.no_grad():  # LayerNorms and biases as after training: not ones and zeros
        for parameter in network.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return network


def grown(kind: Any, small: Any, seed: int = 3, **changes: int) -> Any:
    large = config(**changes)
    sizes = [dimensions(each.to_dict(), classes=2) for each in (small.config, large)]
    check_growth(*sizes, source="small")
    state = grow(small.state_dict(), *sizes, seed=seed)
    network = kind(large).eval()
    network.load_state_dict(state)
    network.tie_weights()
    return network


def batch() -> dict[str, Tensor]:
    ids = torch.randint(0, 60, (3, 12), generator=torch.Generator().manual_seed(2))
    mask = (torch.arange(12) < torch.tensor([[12], [7], [3]])).long()
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": (ids > 30).long()}


@pytest.mark.parametrize("changes", WIDE, ids=lambda changes: " ".join(changes))
def test_a_wider_model_has_the_outputs_of_the_small_one(changes: dict[str, int]):
    """fp32: sums of twice as many products, of values near 1."""
    small = model(BertForMaskedLM)
    large = grown(BertForMaskedLM, small, **changes)
    with torch.no_grad():
        torch.testing.assert_close(large(**batch()).logits, small(**batch()).logits, rtol=1e-4, atol=2e-5)
    table = large.get_input_embeddings().weight
    assert large.get_output_embeddings().weight.data_ptr() == table.data_ptr()


def test_the_pooler_grows_too_and_copies_of_states_are_alike():
    small = model(BertModel)
    large = grown(BertModel, small, hidden_size=32, num_attention_heads=4, intermediate_size=48)
    with torch.no_grad():
        mine, theirs = large(**batch()), small(**batch())
    for actual, expected in (
        (mine.last_hidden_state, theirs.last_hidden_state),
        (mine.pooler_output, theirs.pooler_output),
    ):
        torch.testing.assert_close(actual, expected.repeat(*[1] * (expected.ndim - 1), 2), rtol=1e-4, atol=2e-5)


def test_a_deeper_model_has_the_layers_again():
    small = model(BertModel)
    state = grown(BertModel, small, num_hidden_layers=5).state_dict()
    mine = small.state_dict()
    for layer in range(5):
        name = "encoder.layer.{}.intermediate.dense.weight"
        assert torch.equal(state[name.format(layer)], mine[name.format(layer % 2)])


def test_copies_part_in_training_and_a_seed_gives_the_same_model():
    small = model(BertForMaskedLM)
    how = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}
    large, again, other = (grown(BertForMaskedLM, small, seed=seed, **how) for seed in (3, 3, 4))
    states = [each.state_dict() for each in (large, again, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert any(not torch.equal(states[0][name], states[2][name]) for name in states[0])
    labels = batch()["input_ids"]
    large(**batch(), labels=labels).loss.backward()
    gradient = large.bert.encoder.layer[0].intermediate.dense.weight.grad
    first, second = gradient[:24], gradient[24:]
    assert not torch.allclose(first, second, rtol=0.1, atol=float(gradient.abs().mean()) * 0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden_size": 24, "num_attention_heads": 3},
            "random.hidden: expected a multiple of the 16 of small, found 24",
        ),
        (
            {"hidden_size": 32, "num_attention_heads": 2},
            "random.heads: expected heads of 8 as in small, 32 / 2 gives 16",
        ),
        ({"num_hidden_layers": 1}, "random.layers: expected at least the 2 of small, found 1"),
        ({"intermediate_size": 8}, "random.intermediate: expected at least the 24 of small, found 8"),
    ],
)
def test_sizes_that_cannot_be_made_are_refused(changes: dict[str, int], message: str):
    sizes = [dimensions(each.to_dict(), classes=2) for each in (config(), config(**changes))]
    with pytest.raises(CompressError, match=message):
        check_growth(*sizes, source="small")
