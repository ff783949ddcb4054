"""The linear algebra of projected students, against its stated properties."""

from __future__ import annotations

import numpy as np
import pytest

from compress.models.students import algebra


def normal(*shape: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).normal(size=shape)


def low_rank(tokens: int, size: int, rank: int) -> np.ndarray:
    return normal(tokens, rank) @ normal(rank, size)


def moment(states: np.ndarray) -> np.ndarray:
    return states.T @ states


@pytest.mark.parametrize("width", [1, 2, 9, 16])
def test_the_basis_is_orthonormal_and_takes_the_mean_to_the_mean(width: int):
    basis = algebra.shared_basis(moment(normal(50, 16)), width)
    np.testing.assert_allclose(basis.T @ basis, np.eye(width), atol=1e-12)
    np.testing.assert_allclose(basis.sum(0), np.full(width, (16 / width) ** 0.5), atol=1e-12)


def test_the_basis_of_full_width_is_the_identity():
    for tokens in (50, 5):  # few tokens also leave directions without variance
        np.testing.assert_allclose(algebra.shared_basis(moment(normal(tokens, 16)), 16), np.eye(16), atol=1e-10)


def test_the_basis_holds_all_that_a_low_rank_has():
    states = low_rank(60, 16, 5)
    basis = algebra.shared_basis(moment(states), 6)  # one more direction, for the mean
    np.testing.assert_allclose(states @ basis @ basis.T, states, atol=1e-10)


def test_a_refit_leaves_a_map_that_fits_alone_and_mends_one_that_does_not():
    inputs, matrix, bias = normal(400, 8), normal(5, 8), normal(5)
    targets = inputs @ matrix.T + bias
    same = algebra.refit(matrix, bias, inputs, targets)
    np.testing.assert_allclose(same[0], matrix, atol=1e-12)
    np.testing.assert_allclose(same[1], bias, atol=1e-12)
    mended = algebra.refit(np.zeros((5, 8)), np.zeros(5), inputs, targets)
    np.testing.assert_allclose(mended[0], matrix, atol=0.02)  # the weakest ridge shrinks it by about 1e-3
    np.testing.assert_allclose(mended[1], bias, atol=0.02)


def test_a_refit_to_noise_changes_little_but_the_constant():
    """With nearly as many inputs as tokens, plain least squares would fit the noise."""
    inputs, noise, fresh = normal(100, 80), normal(100, 3) + 7, normal(500, 80)
    matrix, bias = algebra.refit(np.zeros((3, 80)), np.zeros(3), inputs, noise)
    assert (fresh @ matrix.T).var() < 0.2
    assert (fresh @ np.linalg.lstsq(inputs, noise - 7)[0]).var() > 1
    np.testing.assert_allclose(bias, noise.mean(0), atol=0.2)


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_a_refit_to_few_tokens_is_finite(tokens: int):
    matrix, bias = algebra.refit(np.zeros((3, 8)), np.zeros(3), normal(tokens, 8), normal(tokens, 3))
    assert np.isfinite(matrix).all() and np.isfinite(bias).all()


def test_a_refit_is_not_upset_by_constant_inputs():
    inputs = normal(40, 3)
    inputs[:, 1] = 0.1
    targets = inputs @ np.array([[2.0, 5, -1]]).T
    matrix, bias = algebra.refit(np.ones((1, 3)), np.zeros(1), inputs, targets)
    assert matrix[0, 1] == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(inputs @ matrix.T + bias, targets, atol=0.02)
    matrix, bias = algebra.refit(np.ones((2, 3)), np.zeros(2), np.ones((8, 3)), np.zeros((8, 2)))
    np.testing.assert_allclose(np.ones((8, 3)) @ matrix.T + bias, 0, atol=1e-12)


def test_the_fitted_norm_is_the_one_that_made_the_targets():
    inputs, gain, bias = normal(100, 6), normal(6), normal(6, seed=4)
    standard = (inputs - inputs.mean(1, keepdims=True)) / inputs.std(1, keepdims=True)
    fit = algebra.fitted_norm(inputs, standard * gain + bias, 1e-12)
    np.testing.assert_allclose(fit[0], gain, atol=1e-9)
    np.testing.assert_allclose(fit[1], bias, atol=1e-9)


@pytest.mark.parametrize("size", [2, 3, 6])
def test_scores_are_the_nearest_of_their_rank(size: int):
    queries, keys = normal(30, 6) + 1, low_rank(30, 6, 6)
    ways = algebra.score_maps(queries, keys, size)
    full = queries @ keys.T / 6**0.5
    left, values, right = np.linalg.svd(full)
    best = (left[:, :size] * values[:size]) @ right[:size]
    np.testing.assert_allclose((queries @ ways[0].T) @ (keys @ ways[1].T).T / size**0.5, best, atol=1e-6)


def test_values_lose_least_of_what_is_read_from_them():
    contexts, output = low_rank(50, 6, 6) + 3, normal(10, 6)
    into, back = algebra.value_maps(contexts, output, 4)
    centred = contexts - contexts.mean(0)
    kept = centred @ into.T @ back.T @ output.T
    left, values, right = np.linalg.svd(centred @ output.T, full_matrices=False)
    np.testing.assert_allclose(kept, (left[:, :4] * values[:4]) @ right[:4], atol=1e-6)
    np.testing.assert_allclose(into @ back, np.eye(4), atol=1e-6)


def test_the_strongest_neurons_vary_and_are_read():
    activations = normal(40, 5) * np.array([1, 0, 3, 2, 5]) + np.array([0, 99, 0, 0, 0])
    output = np.array([[1.0, 1, 1, 1, 0.01]])
    assert algebra.strongest(activations, output, 3).tolist() == [0, 2, 3]


def test_blocks_lie_on_the_diagonal():
    blocks = [np.full((1, 2), 3.0), np.full((1, 2), 4.0)]
    assert algebra.block_diagonal(blocks).tolist() == [[3, 3, 0, 0], [0, 0, 4, 4]]
