"""Layer similarity: CKA against Gram matrices, attention against SciPy, and invariances of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import classifier_of
from pruned_toys import WITHOUT_PARTS, whole
from scipy.stats import entropy
from transformers import AutoConfig, AutoModelForSequenceClassification

from compress.models.features import similarity
from compress.models.features.named import compute_features
from compress.models.features.similarity import (
    Reader,
    StateSums,
    attention_divergences,
    attention_problem,
    layer_similarity,
)
from compress.pruning.removal import without_units
from compress.tasks import Encoded


def js(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the Jensen-Shannon divergence of each row, in bits, from the two divergences to the mean."""
    return (entropy(p, (p + q) / 2, base=2, axis=1) + entropy(q, (p + q) / 2, base=2, axis=1)) / 2


LENGTHS = (3, 9, 17, 5, 12, 17)
RNG = np.random.default_rng(0)


def direct_cka(x: np.ndarray, y: np.ndarray) -> float:
    """HSIC(K, L) / √(HSIC(K, K) HSIC(L, L)) of the Gram matrices of all tokens (Kornblith et al. 2019, eq. 3), centred by H."""
    centre = np.eye(len(x)) - 1 / len(x)

    def hsic(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.trace(a @ a.T @ centre @ b @ b.T @ centre))

    return hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y))


def cka(student: list[np.ndarray], teacher: list[np.ndarray], parts: int = 1) -> np.ndarray:
    sums = StateSums()
    for rows in np.array_split(np.arange(len(student[0])), parts):
        sums.add(*([torch.from_numpy(layer[rows]) for layer in layers] for layers in (student, teacher)))
    return sums.cka()


def layers(*widths: int, tokens: int = 60) -> list[np.ndarray]:
    """Return states that share a part, with a mean away from 0 as a model's have."""
    shared = RNG.normal(size=(tokens, 4))
    return [
        3 + shared @ RNG.normal(size=(4, width)) + 0.7 * (place + 1) * RNG.normal(size=(tokens, width))
        for place, width in enumerate(widths)
    ]


STUDENT, TEACHER = (lambda stack: (stack[:3], stack[3:]))(layers(8, 8, 5, 12, 16, 12, 7))


def test_cka_is_that_of_gram_matrices() -> None:
    expected = [[direct_cka(x, y) for y in TEACHER] for x in STUDENT]
    np.testing.assert_allclose(cka(STUDENT, TEACHER), expected, rtol=1e-10)
    assert np.ptp(expected) > 0.1


def test_batches_change_nothing() -> None:
    np.testing.assert_allclose(cka(STUDENT, TEACHER, parts=7), cka(STUDENT, TEACHER), rtol=1e-12)


def test_rotations_scales_and_shifts_change_nothing() -> None:
    turned = [5 * layer @ np.linalg.qr(RNG.normal(size=[layer.shape[1]] * 2))[0] - 40 for layer in STUDENT]
    np.testing.assert_allclose(cka(turned, TEACHER), cka(STUDENT, TEACHER), rtol=1e-9)


def test_another_linear_map_does_change_it() -> None:
    skewed = [layer * np.geomspace(1, 30, layer.shape[1]) for layer in STUDENT]
    assert np.abs(cka(skewed, TEACHER) - cka(STUDENT, TEACHER)).min() > 1e-3


def test_states_that_never_differ_are_like_none() -> None:
    constant = np.broadcast_to(RNG.normal(size=6) * 1e3, (60, 6)).copy()
    assert cka([constant, *STUDENT], TEACHER)[0].tolist() == [0] * len(TEACHER)
    np.testing.assert_allclose(cka([constant, *STUDENT], TEACHER)[1:], cka(STUDENT, TEACHER))


def test_divergence_of_attention_is_that_of_scipys_relative_entropies() -> None:
    student, teacher = (RNG.dirichlet(np.full(9, 0.3), size=(count, 20)) for count in (2, 3))
    expected = [[js(p, q).sum() for q in teacher] for p in student]
    divergences = attention_divergences(*([*torch.from_numpy(layers)] for layers in (student, teacher)))
    np.testing.assert_allclose(divergences, expected, rtol=1e-9)


def test_divergence_is_0_to_1_bit() -> None:
    one, other = torch.tensor([[1.0, 0, 0]]), torch.tensor([[0, 0.5, 0.5]])
    assert attention_divergences([one.double()], [one.double(), other.double()]).tolist() == [[0, 1]]


def bert(hidden: int = 16, count: int = 2, heads: int = 2, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    sizes = {"hidden_size": hidden, "num_hidden_layers": count, "num_attention_heads": heads, "intermediate_size": 24}
    config = AutoConfig.for_model("bert", vocab_size=60, max_position_embeddings=40, initializer_range=0.3, **sizes)
    return AutoModelForSequenceClassification.from_config(config).eval()


def reader(model: Any, lengths: tuple[int, ...] = LENGTHS) -> Reader:
    random = np.random.default_rng(1)
    ids = [random.integers(5, 60, length).astype(np.int32) for length in lengths]
    return Reader(model, Encoded(ids, [np.zeros(len(row), np.int8) for row in ids], np.zeros(len(ids))), 0)


def alone(one: Reader, row: int, names: list[str]) -> dict[str, np.ndarray]:
    """Return the features of one text without padding."""
    ids = torch.from_numpy(one.texts.input_ids[row].astype(np.int64))[None]
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    with torch.inference_mode():
        return {name: value[0].numpy() for name, value in compute_features(one.model, batch, names).items()}


def test_two_models_are_compared_over_all_tokens_but_padding() -> None:
    """Against states and attention of each text alone; the models differ in width, depth and number of heads."""
    pair = reader(bert()), reader(bert(24, 3, 4, seed=1))
    states, attention = layer_similarity(*pair)
    rows = range(len(LENGTHS))
    own, theirs = (
        [
            np.concatenate([alone(one, row, [f"hidden[{layer}]"])[f"hidden[{layer}]"] for row in rows])
            for layer in range(one.model.config.num_hidden_layers + 1)
        ]
        for one in pair
    )
    # fp32 forward passes, with padding and without
    np.testing.assert_allclose(states, [[direct_cka(x, y) for y in theirs] for x in own], rtol=1e-4)
    assert attention is not None
    for mine in range(2):
        for other in range(3):
            total = 0.0
            for row in rows:
                p = alone(pair[0], row, [f"weights[{mine}]"])[f"weights[{mine}]"].mean(0)
                q = alone(pair[1], row, [f"weights[{other}]"])[f"weights[{other}]"].mean(0)
                total += js(p, q).sum()
            assert attention[mine, other] == pytest.approx(total / sum(LENGTHS), rel=1e-3)


def test_padding_never_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One text per batch, without padding, against all in one batch, the shortest padded to six times its length."""
    similarities = []
    for tokens in (1, 10**6):
        monkeypatch.setattr(similarity, "_TOKENS", tokens)
        similarities.append(layer_similarity(reader(bert()), reader(bert(24, 3, seed=1))))
    for one, other in zip(*similarities, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)  # fp32 forwards


def test_a_model_is_nearest_itself() -> None:
    states, attention = layer_similarity(reader(bert()), reader(bert()))
    np.testing.assert_allclose(np.diag(states), 1, rtol=1e-12)
    assert attention is not None
    assert np.diag(attention).tolist() == [0, 0]
    assert states[0, 2] < 0.999 and attention[0, 1] > 0


def test_local_layers_attend_within_their_window() -> None:
    """ModernBERT's own eager attention gives the expected weights."""
    model = classifier_of("modernbert", local_attention=6).eval()
    one = reader(model, (20,))
    weights = alone(one, 0, ["weights[0]", "weights[1]"])
    ids = torch.from_numpy(one.texts.input_ids[0].astype(np.int64))[None]
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        expected = model(input_ids=ids, output_attentions=True).attentions
    assert (expected[1] == 0).any() and not (expected[0] == 0).any()
    for layer in (0, 1):
        np.testing.assert_allclose(weights[f"weights[{layer}]"], expected[layer][0], rtol=1e-4, atol=1e-6)  # fp32


def test_layers_without_heads_are_left_out_by_name() -> None:
    pruned = without_units(whole("bert"), *WITHOUT_PARTS["attention first"])
    states, attention = layer_similarity(reader(pruned), reader(whole("bert")))
    assert states.shape == (3, 3)
    assert attention is not None
    assert np.isnan(attention).tolist() == [[True, True], [False, False]]
    assert attention_problem(pruned) == "attention in layer 1, where pruning left no heads"
    assert attention_problem(whole("bert")) is None


def test_attention_that_cannot_be_read_is_left_out_by_name() -> None:
    sizes = {"vocab_size": 60, "d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 24, "pad_token_id": 0}
    torch.manual_seed(0)
    config = AutoConfig.for_model("xlnet", **sizes)
    xlnet: Any = AutoModelForSequenceClassification.from_config(config).eval()
    states, attention = layer_similarity(reader(xlnet), reader(bert()))
    assert states.shape == (2, 3)
    assert attention is None
    assert attention_problem(xlnet) == "attention, which cannot be read in XLNet models"
