"""Streams, samplers, intervals and the statistical asserts, tried on true and on false claims."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import spectheory as spec
from spectheory.models import synthetic_pairs
from spectheory.montecarlo import (
    clopper_pearson,
    empirical_bernstein,
    estimate_deviation,
    hoeffding,
    simulate_steps,
    streams,
)
from spectheory.testing import assert_law, assert_rate, detectable_deviation, sample_size_for
from spectheory.verifiers import Nucleus, ResampleTarget, Standard


def test_streams_depend_on_their_name_alone():
    both, one = streams(7, "draft", "accept"), streams(7, "accept")
    assert both["accept"].random(3).tolist() == one["accept"].random(3).tolist()
    assert streams(7, "draft")["draft"].random() != streams(8, "draft")["draft"].random()


def test_a_batch_of_rows_agrees_with_its_exact_laws():
    """10 asserts at a false-alarm rate of 1e-9 each."""
    p, q = synthetic_pairs("dirichlet-1", 10, 6)
    sample = simulate_steps(Nucleus(0.8), p, q, 100_000, seed=2)
    for r, law in enumerate(spec.exact.output_law(Nucleus(0.8), p, q)):
        assert_law(sample.emitted[:, r], law)


def test_injected_coins_decide_everything(c4):
    p, q = c4
    coins = {name: np.array([[u]]) for name, u in (("draft", 0.3), ("accept", 0.39), ("residual", 0.7))}
    sample = simulate_steps(Standard(), p, q, 1, coins=coins)
    assert (sample.drafted[0, 0], sample.accepted[0, 0], sample.emitted[0, 0]) == (1, True, 1)
    coins["accept"] = np.array([[0.4]])  # A(1) = .4: the test is strict
    sample = simulate_steps(Standard(), p, q, 1, coins=coins)
    assert (sample.accepted[0, 0], sample.emitted[0, 0]) == (False, 2)


def test_deviation_estimates_cover(c4):
    """alpha = 1e-9 each: the interval misses the exact deviation with at most that probability."""
    sample = simulate_steps(ResampleTarget(), *c4, 50_000, seed=4)
    (interval,) = estimate_deviation(sample, c4[0], alpha=1e-9)
    assert spec.exact.step_deviation(ResampleTarget(), *c4) in interval
    assert interval.lower > 0.1
    assert interval.kind == "statistical"


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 10, 200])
def test_clopper_pearson_covers_exactly(rate, n):
    """Coverage summed over the binomial law itself, not simulated."""
    k = np.arange(n + 1)
    covered = np.array([rate in clopper_pearson(i, n, 0.05) for i in k])
    assert binom.pmf(k, n, rate)[covered].sum() >= 0.95 - 1e-12


def test_bounded_mean_intervals_cover_and_variance_helps():
    """1,000 simulated intervals at alpha = 1e-12: under a valid method one miss has probability at most 1e-9."""
    rng = np.random.default_rng(0)
    for method in (hoeffding, empirical_bernstein):
        assert all(0.02 in method((rng.random(500) < 0.02).astype(float), 1e-12) for _ in range(500))
    x = (rng.random(20_000) < 0.001).astype(float)
    assert empirical_bernstein(x, 1e-3).width < hoeffding(x, 1e-3).width


def test_assert_law_fails_on_a_wrong_law_at_its_designed_size():
    """Designed for a deviation of .05 on 4 tokens with both error rates 1e-9."""
    p = np.array([0.4, 0.2, 0.3, 0.1])
    wrong = p + np.array([-0.05, 0.05, 0, 0])
    n = sample_size_for(0.05, 4)
    assert detectable_deviation(n, 4) <= 0.05
    draws = np.random.default_rng(0).choice(4, size=n, p=wrong)
    assert_law(draws, wrong)
    with pytest.raises(AssertionError, match="in TV from the claimed one"):
        assert_law(draws, p)


def test_assert_law_rejects_a_single_impossible_token():
    with pytest.raises(AssertionError, match="no mass"):
        assert_law([0, 0, 1], [1.0, 0.0])
    with pytest.raises(AssertionError, match="drew token 2"):
        assert_law([0, 0, 2], [0.5, 0.5])


def test_assert_rate_on_true_and_false_claims():
    assert_rate(480, 1000, 0.5)
    with pytest.raises(AssertionError, match="is not a rate"):
        assert_rate(300, 1000, 0.5)
