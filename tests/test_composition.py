"""Composition: brackets brute force, agrees with the published accountant, certifies its width, refuses below its floor."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as judge
from hypothesis import given, settings
from hypothesis import strategies as st

from spectheory.errors import DataError, PrecisionError, UsageError
from spectheory.ledger.sequence import PARTIAL_WITNESS
from spectheory.pmf import total_variation
from spectheory.testing import pairs
from spectheory.theory import composition

C4 = np.array([0.22, 0.5, 0.18, 0.1]), np.array([0.4, 0.2, 0.3, 0.1])


def brute(rows_a, rows_b):
    a, b = np.ones(1), np.ones(1)
    for x, y in zip(rows_a, rows_b):
        a, b = np.outer(a, x).ravel(), np.outer(b, y).ravel()
    return total_variation(a, b)


def judged(p_tilde, p, length, pessimistic, mesh=1e-4):
    """The dp-accounting package: delta at epsilon 0 of the self-composed privacy loss distribution."""

    def logs(law):
        return {i: math.log(x) if x > 0 else -math.inf for i, x in enumerate(law)}

    loss = judge.from_two_probability_mass_functions(
        logs(p), logs(p_tilde), pessimistic_estimate=pessimistic, value_discretization_interval=mesh, symmetric=False
    )
    return float(loss.self_compose(length).get_delta_for_epsilon(0.0))


def test_degenerate_pairs():
    p = np.array([0.5, 0.5])
    for length in (1, 2, 1000):
        assert composition.sequence_tv(p, p, length=length).upper <= 1e-9 * length
        assert composition.sequence_tv(np.ones(1), np.ones(1), length=length).upper <= 1e-9 * length
    assert composition.sequence_tv(np.array([1.0, 0]), np.array([0, 1.0]), length=3).lower == pytest.approx(1)
    assert composition.sequence_tv(*C4, length=1).kind == "exact"
    half = composition.sequence_tv(np.array([0.5, 0.5]), np.array([1.0, 0.0]), length=2)
    assert half.lower <= 0.75 <= half.upper


@settings(max_examples=100)
@given(pairs(max_size=4), st.integers(2, 5), st.sampled_from([1e-2, 1e-4, 1e-6]))
def test_brackets_brute_force_within_the_budget(pair, length, error):
    found = composition.sequence_tv(*pair, length=length, error=error)
    true = brute([pair[0]] * length, [pair[1]] * length)
    assert found.lower - 1e-14 <= true <= found.upper + 1e-14
    assert found.upper - found.lower <= error


@pytest.mark.parametrize("block_size", [1, 3])
def test_finite_blocks_keep_the_upper_end_only(block_size):
    whole = composition.sequence_tv(*C4, length=8)
    assert whole.lower <= brute([C4[0]] * 8, [C4[1]] * 8) <= whole.upper
    cut = composition.sequence_tv(*C4, length=8, block_size=block_size)
    assert cut.upper == pytest.approx(whole.upper, abs=1e-12)
    assert cut.lower == pytest.approx(composition.sequence_tv(*C4, length=block_size).lower, abs=1e-12)


@pytest.mark.parametrize(
    ("p_tilde", "p", "length", "value"),
    [
        ((0.4, 0.6), (0.7, 0.3), 2, 0.33),
        ((0.4, 0.6), (0.7, 0.3), 3, 0.432),
        ((0.4, 0.6), (0.7, 0.3), 10, 0.6834930498),
        ((0.4, 0.6), (0.7, 0.3), 50, 0.9716891107837),
        ((0.51, 0.49), (0.5, 0.5), 100, 0.0798603784),
        ((0.51, 0.49), (0.5, 0.5), 1000, 0.2481285232),
        ((0.51, 0.49), (0.5, 0.5), 10000, 0.6827140150),
    ],
)
def test_golden_products(p_tilde, p, length, value):
    found = composition.sequence_tv(np.array(p_tilde), np.array(p), length=length)
    assert found.lower - 1e-10 <= value <= found.upper + 1e-10
    assert found.upper - found.lower <= 1e-6


@pytest.mark.parametrize("length", [1, 10, 1000])
def test_agrees_with_dp_accounting(length):
    tilted = C4 if length < 1000 else (0.98 * C4[1] + 0.02 * C4[0], C4[1])
    found = composition.sequence_tv(*tilted, length=length)
    low, high = (judged(*tilted, length, pessimistic) for pessimistic in (False, True))
    assert low - 1e-9 <= found.upper
    assert found.lower <= high + 1e-9
    assert high - low < 0.1  # the judge says something


def test_different_steps():
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(3), (2, 8))
    found = composition.product_tv(a, b)
    assert found.lower <= brute(a, b) <= found.upper
    assert found.upper - found.lower <= 1e-6
    one = composition.product_tv(np.stack([C4[0]] * 5), np.stack([C4[1]] * 5))
    same = composition.sequence_tv(*C4, length=5)
    assert max(one.lower, same.lower) <= min(one.upper, same.upper)


@settings(max_examples=60)
@given(st.lists(pairs(min_size=3, max_size=3), min_size=1, max_size=4))
def test_dominating_pair_dominates_each_row(rows):
    a, b = (np.stack([r[i] for r in rows]) for i in (0, 1))
    big = composition.dominating_pair(a, b)
    assert all(composition.dominates(*big, x, y) for x, y in zip(a, b))
    if len(rows) == 1:
        assert total_variation(*big) == pytest.approx(total_variation(a[0], b[0]), abs=1e-12)
    assert big[0].sum() == pytest.approx(1)


def test_domination_for_positive_epsilon_is_not_enough():
    small, big, length = PARTIAL_WITNESS
    assert composition.dominates(*big, *small, least=1)
    assert not composition.dominates(*big, *small)
    assert brute([small[0].astype(float)] * length, [small[1].astype(float)] * length) == pytest.approx(5 / 9)
    assert composition.sequence_tv(*big, length=length).upper == pytest.approx(1 / 3, abs=1e-6)


def test_long_horizons_cost_little_and_stay_certified():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(50))
    q = p * np.exp(0.003 * rng.normal(size=50))
    found = composition.sequence_tv(q / q.sum(), p, length=10**5, error=1e-4)
    assert found.upper - found.lower <= 1e-4
    assert 0.29 < found.lower < found.upper < 0.31
    tight = composition.sequence_tv(q / q.sum(), p, length=10**5, error=1e-5)
    assert found.lower <= tight.upper
    assert tight.lower <= found.upper


def test_refusals():
    with pytest.raises(PrecisionError, match="numerical floor"):
        composition.sequence_tv(*C4, length=1000, error=1e-13)
    with pytest.raises(UsageError, match="budget must be positive"):
        composition.sequence_tv(*C4, length=10, error=0)
    with pytest.raises(UsageError, match="must be >= 1"):
        composition.sequence_tv(*C4, length=0)
    with pytest.raises(UsageError, match="must be >= 1"):
        composition.sequence_tv(*C4, length=1, block_size=0)
    with pytest.raises(DataError, match="p_tilde row 0 sums"):
        composition.sequence_tv(np.array([0.5, 0.6]), np.array([0.5, 0.5]), length=2)
    with pytest.raises(DataError, match="one shape"):
        composition.sequence_tv(C4[0], np.array([0.5, 0.5]), length=2)
    with pytest.raises(DataError, match="one pair"):
        composition.sequence_tv(np.stack([C4[0]]), np.stack([C4[1]]), length=2)
    with pytest.raises(DataError, match="one pair a row"):
        composition.product_tv(*C4)
