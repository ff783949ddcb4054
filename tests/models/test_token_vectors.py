"""Token vectors: their principal axes, the weights of rare and frequent tokens, and the special tokens around a text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import KINDS, classifier_of, tokenizer_of
from tokenizers import Tokenizer

from compress.models import token_vectors
from compress.models.token_vectors import (
    TextFrame,
    principal_axes,
    text_frame,
    token_frequencies,
    token_states,
    weighted_vectors,
)


@pytest.fixture
def states() -> np.ndarray:
    """Return [token, hidden] with different variances and a mean that is not 0."""
    rng = np.random.default_rng(3)
    return (rng.standard_normal((50, 6)) @ rng.standard_normal((6, 6)) + 2).astype(np.float32)


def test_the_axes_are_numpy_s_of_the_centred_matrix(states: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_vectors, "_ROWS", 7)  # several blocks, the last of them short
    rows = np.arange(50) % 5 != 0
    mean, axes, kept = principal_axes(states, rows, 3)
    centred = states[rows].astype(np.float64) - states[rows].mean(axis=0, dtype=np.float64)
    _, sizes, right = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(mean, states[rows].mean(axis=0, dtype=np.float64), atol=1e-12)
    # float64 on both sides; the scatter matrix squares singular values, which differ by less than a factor of 100
    np.testing.assert_allclose(np.abs(np.sum(axes * right[:3].T, axis=0)), 1, atol=1e-10)
    assert kept == pytest.approx(float((sizes[:3] ** 2).sum() / (sizes**2).sum()), abs=1e-12)
    assert (axes[np.abs(axes).argmax(axis=0), range(3)] > 0).all()
    _, mirrored, _ = principal_axes(-states, rows, 3)
    np.testing.assert_allclose(mirrored, axes, atol=1e-10)


def test_a_token_weighs_a_over_a_plus_p_in_its_row(states: np.ndarray) -> None:
    rows = np.arange(50) > 3
    frequencies = np.where(rows, np.linspace(0.0, 0.1, 50), 0)
    vectors, _ = weighted_vectors(states, rows, frequencies, width=4, a=1e-2)
    even, _ = weighted_vectors(states, rows, np.zeros(50), width=4, a=1e-2)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, even * (1e-2 / (1e-2 + frequencies))[:, None], rtol=1e-6)
    assert not vectors[~rows].any()
    assert np.array_equal(weighted_vectors(states, rows, frequencies, width=4, a=None)[0], even)
    assert float(np.sqrt((even[rows] ** 2).mean())) == pytest.approx(1, abs=1e-6)
    mean, axes, _ = principal_axes(states, rows, 4)
    own = (states[rows] - mean) @ axes
    np.testing.assert_allclose(even[rows] * np.sqrt((own**2).mean()), own, atol=1e-5)


def test_vectors_as_wide_as_the_states_keep_their_axes(states: np.ndarray) -> None:
    rows = np.arange(50) > 3
    vectors, kept = weighted_vectors(states, rows, np.zeros(50), width=6, a=None)
    own = states[rows] - states[rows].mean(axis=0)
    np.testing.assert_allclose(vectors[rows], own / np.sqrt((own**2).mean()), atol=1e-5)
    assert kept == pytest.approx(1) and not vectors[~rows].any()


def test_a_token_that_was_not_seen_is_as_frequent_as_its_rank_says_and_no_more_than_one_seen_once() -> None:
    rows = np.array([False, True, True, True, True])
    frequencies = token_frequencies(np.array([100, 6, 0, 2, 0]), rows)
    zipf = 1 / (np.arange(1, 5) * (1 + 1 / 2 + 1 / 3 + 1 / 4))
    assert frequencies.tolist() == pytest.approx([0, 6 / 8, min(zipf[1], 1 / 8), 2 / 8, min(zipf[3], 1 / 8)])
    frequencies = token_frequencies(np.array([0, 1, 0, 0, 0]), rows)
    assert frequencies.tolist() == pytest.approx([0, 1, *zipf[1:]])
    assert token_frequencies(np.zeros(5, int), rows).tolist() == pytest.approx([0, *zipf])


def test_the_frame_of_a_bert(toy_tokenizer: Tokenizer) -> None:
    (a,) = toy_tokenizer.encode("a", add_special_tokens=False).ids
    assert text_frame(toy_tokenizer) == TextFrame((2, a, 3), (0, 0, 0), 1, (0, 2, 3, 4), 3)


@pytest.mark.parametrize("family", KINDS)
def test_a_pair_is_parted_and_no_word_is_special(family: str) -> None:
    tokenizer = tokenizer_of(family)
    frame, pair = text_frame(tokenizer), tokenizer.encode("the film is good", "the story")
    kept = [number not in frame.special for number in pair.ids]
    assert kept == [not special for special in pair.special_tokens_mask]
    assert frame.separator is not None
    second = np.cumsum(np.array(pair.ids) == frame.separator) > 0
    first_text = [texts == 0 for texts in pair.sequence_ids]
    assert [bool(own and not after) for own, after in zip(kept, second, strict=True)] == first_text


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "deberta-v2", "xlnet"])
@pytest.mark.parametrize("mean", [False, True])
def test_a_state_is_that_of_the_token_alone(family: str, mean: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_vectors, "_BATCH", 32)
    model: Any = _model(family)
    frame = TextFrame((5, 9, 6), (0, 0, 0), 1, (5, 6), 6)
    vectors, done = np.zeros((90, 32), np.float32), list[int]()
    token_states(model, frame, vectors, mean=mean, on_progress=done.append)
    assert done == [32, 64, 90]
    for token in (0, 31, 32, 89):
        ids = torch.tensor([[5, token, 6]])
        with torch.no_grad():
            layers = model(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True).hidden_states
        expected = torch.stack([layer[0, 1] for layer in layers]).mean(dim=0) if mean else layers[-1][0, 1]
        np.testing.assert_allclose(vectors[token], expected.numpy(), atol=2e-5)  # batches add up in another order


def _model(family: str) -> Any:
    if family in KINDS:
        return classifier_of(family)
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    if family == "xlnet":
        sizes = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}
    torch.manual_seed(3)
    return AutoModelForSequenceClassification.from_config(AutoConfig.for_model(family, vocab_size=90, **sizes)).eval()
