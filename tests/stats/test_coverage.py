"""Coverage of the intervals over seeds, in theory and in a simulation.

The simulation: two models of 90 and 88.5% accuracy, each trained with several seeds. Whether a training answers a text correctly depends
on the text, the model and the seed. So base and other of one seed differ on 7% of the texts, and two seeds of a model on 5%, like models
fine-tuned on SST-2. A seed shifts the other model's true accuracy by `seed_sd`. The truth is the mean over all texts and all seeds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from default_suite import slow
from scipy import stats

from compress.metrics import ClassHeadline
from compress.stats.significance import half_width, paired_bootstrap, paired_bootstrap_seeds

BASE, OTHER = 0.90, 0.885
TRUTH = 100 * (OTHER - BASE)
OF_TEXT, OF_MODEL, OF_SEED = 0.90, 0.04, 0.06  # shares of the variance of an answer's difficulty
SEED_SD = (0.0, 0.4, 1.0, 2.0, 3.0)  # points
EXAMPLES = (277, 872, 10_000)
SEEDS = (2, 3, 5)
LOWEST, HIGHEST = 0.93, 0.97
_CELLS = 4_000_000  # answers simulated at a time: 16 MB


def hardness(examples: int, runs: int, seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Return [run, seed, model, example], each standard normal."""
    text = rng.standard_normal((runs, 1, 1, examples), dtype=np.float32)
    model = rng.standard_normal((runs, 1, 2, examples), dtype=np.float32)
    seed = rng.standard_normal((runs, seeds, 2, examples), dtype=np.float32)
    return np.sqrt(OF_TEXT) * text + np.sqrt(OF_MODEL) * model + np.sqrt(OF_SEED) * seed


def right(hard: np.ndarray, seed_sd: float, rng: np.random.Generator) -> np.ndarray:
    """Return which answers are right, [run, seed, model, example]."""
    shifted = OTHER + seed_sd / 100 * rng.standard_normal(hard.shape[:2])
    able = np.stack([np.full_like(shifted, BASE), shifted], axis=-1)
    return hard < stats.norm.ppf(able).astype(np.float32)[..., None]


def covered(gaps: np.ndarray, seeds: int) -> np.ndarray:
    """Whether the interval of each run contains the truth. `gaps`: other minus base [run, seed, example], -1, 0 or 1.

    The bootstrap's covariance of means is the covariance over examples divided by their number, so nothing is drawn.
    """
    gaps = gaps[:, :seeds].astype(np.float32)
    observed, examples = gaps.mean(axis=2), gaps.shape[2]
    covariance = np.einsum("rse,rte->rst", gaps, gaps) / examples - observed[:, :, None] * observed[:, None]
    shared = covariance[:, ~np.eye(seeds, dtype=bool)].mean(axis=1) / examples
    return np.abs(100 * observed.mean(axis=1) - TRUTH) <= half_width(100 * observed, 1e4 * shared)


def coverage(examples: int, runs: int) -> dict[tuple[float, int], float]:
    """Return (seed sd, seeds) -> share of `runs` whose interval contains the truth. All cells share the texts."""
    rng = np.random.default_rng(24)
    step = max(1, _CELLS // (2 * max(SEEDS) * examples))
    held: dict[tuple[float, int], list[np.ndarray]] = {}
    for start in range(0, runs, step):
        hard = hardness(examples, min(step, runs - start), max(SEEDS), rng)
        for seed_sd in SEED_SD:
            answers = right(hard, seed_sd, rng).astype(np.int8)
            for seeds in SEEDS:
                held.setdefault((seed_sd, seeds), []).append(covered(answers[:, :, 1] - answers[:, :, 0], seeds))
    return {cell: float(np.concatenate(parts).mean()) for cell, parts in held.items()}


def outside(shares: dict[tuple[float, int], float], runs: int) -> dict[tuple[float, int], float]:
    """Return the cells outside .93 to .97 by more than two standard errors of the simulation."""
    slack = 2 * np.sqrt(0.95 * 0.05 / runs)
    return {cell: share for cell, share in shares.items() if not LOWEST - slack <= share <= HIGHEST + slack}


def test_the_simulated_world_is_like_real_pairs_of_models() -> None:
    rng = np.random.default_rng(0)
    answers = right(hardness(20_000, 1, 2, rng), 0.0, rng)[0]
    assert answers.mean(axis=(0, 2)) == pytest.approx([BASE, OTHER], abs=0.01)
    assert np.mean(answers[0, 0] != answers[0, 1]) == pytest.approx(0.07, abs=0.01)
    assert np.mean(answers[0, 1] != answers[1, 1]) == pytest.approx(0.055, abs=0.01)


@pytest.mark.parametrize(("examples", "runs"), [(277, 2000), *slow((872, 1000), (10_000, 200))])
def test_coverage_of_every_cell(examples: int, runs: int) -> None:
    shares = coverage(examples, runs)
    assert len(shares) == len(SEED_SD) * len(SEEDS)
    assert outside(shares, runs) == {}, shares


@pytest.mark.slow
@pytest.mark.parametrize(("examples", "runs"), [(277, 40_000), (872, 20_000), (10_000, 4000)])
def test_coverage_of_every_cell_in_full(examples: int, runs: int) -> None:
    shares = coverage(examples, runs)
    assert outside(shares, runs) == {}, shares


@pytest.mark.parametrize("seeds", [2, 3, 4, 5, 6, 10, 30])
def test_coverage_in_theory_whatever_the_variances_are(seeds: int) -> None:
    """Normal differences, integrated over the seeds' variance; its ratio to the examples' variance is from 0 to 10,000."""
    shares = (np.arange(4000) + 0.5) / 4000
    drawn = stats.chi2.ppf(shares, seeds - 1) / (seeds - 1)  # s² divided by its expectation
    for ratio in (0, *np.logspace(-3, 4, 40)):
        variance = ratio * seeds * drawn
        observed = np.zeros((len(drawn), seeds))  # with that sample variance
        observed[:, 0], observed[:, 1] = np.sqrt(variance * (seeds - 1) / 2), -np.sqrt(variance * (seeds - 1) / 2)
        held = 2 * stats.norm.cdf(half_width(observed, 1.0) / np.sqrt(1 + ratio)) - 1
        assert (0.936 if seeds == 2 else 0.949) <= held.mean() <= 0.9685, f"ratio {ratio}"


def answered(examples: int, seeds: int, seed_sd: float, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the logits of (base, other) for each seed; the gold class of every example is 1."""
    for pair in right(hardness(examples, 1, seeds, rng), seed_sd, rng)[0]:
        base, other = np.eye(2, dtype=np.float32)[pair.astype(int)]
        yield base, other


def drawn_coverage(examples: int, seeds: int, seed_sd: float, runs: int) -> float:
    """Return the coverage of intervals as in a report: by the bootstrap, from logits."""
    rng, gold, held = np.random.default_rng(7), np.ones(examples, dtype=np.int64), 0
    for run in range(runs):
        pairs = [(base, other) for base, other in answered(examples, seeds, seed_sd, rng)]
        _, low, high = paired_bootstrap_seeds(ClassHeadline(("accuracy",)), pairs, gold, samples=400, seed=run)
        held += low <= TRUTH <= high
    return held / runs


@pytest.mark.parametrize(("seeds", "seed_sd"), [(2, 2.0), *slow((3, 0.0), (3, 3.0))])
def test_the_interval_of_a_report_covers_as_often(seeds: int, seed_sd: float) -> None:
    """Resampling S - 1 of S seeds would cover .85 at two seeds and 2 points, and at three and 3; resampling S, .82."""
    assert outside({(seed_sd, seeds): drawn_coverage(872, seeds, seed_sd, 200)}, 200) == {}


@pytest.mark.parametrize("examples", [150, 872])
def test_the_interval_of_one_seed_covers_new_examples(examples: int) -> None:
    rng, gold, held = np.random.default_rng(11), np.ones(examples, dtype=np.int64), 0
    for run in range(400):
        ((base, other),) = answered(examples, 1, 0.0, rng)
        _, low, high = paired_bootstrap(ClassHeadline(("accuracy",)), base, other, gold, samples=500, seed=run)
        held += low <= TRUTH <= high
    assert stats.binomtest(held, 400, 0.95).pvalue > 0.01, held


@pytest.mark.slow
@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("seed_sd", SEED_SD)
def test_the_interval_of_a_report_covers_as_often_in_full(examples: int, seeds: int, seed_sd: float) -> None:
    assert outside({(seed_sd, seeds): drawn_coverage(examples, seeds, seed_sd, 1000)}, 1000) == {}
