"""Intervals for TV from counts and their designs: exact on small cases, covering, and dual to the test they report."""

from __future__ import annotations

from itertools import product
from math import comb, factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectheory.errors import UsageError
from spectheory.montecarlo.multinomial import EVENT_CELLS, design, deviation_interval, rejects
from spectheory.testing import laws


def outcomes(n, size):
    """Every count vector of n draws over `size` cells."""
    return [c for c in product(range(n + 1), repeat=size) if sum(c) == n]


def probability(counts, law):
    return factorial(sum(counts)) / prod(factorial(c) for c in counts) * prod(p**c for p, c in zip(law, counts))


def test_no_draws_say_nothing():
    found = deviation_interval([0, 0], [0.5, 0.5], 0.01)
    assert (found.interval.lower, found.interval.upper) == (0, 1)
    assert not found.rejected


def test_one_cell_is_certain():
    found = deviation_interval([10], [1.0], 0.01)
    assert (found.interval.lower, found.interval.upper) == (0, 0)
    assert design([1.0], 0.1, 0.01, 0.01).n == 1


@pytest.mark.parametrize("method", ["events", "radius"])
def test_a_token_without_mass_is_a_proof(method):
    law = [0.5, 0.5, 0.0]
    found = deviation_interval([50, 49, 1], law, 1e-6, method)
    assert found.rejected
    assert found.witness.tolist() == [False, False, True]
    assert found.interval.lower < 0.01  # a proof that TV is not 0, not a large bound
    assert rejects(np.array([50, 49, 1]), law, 1e-6, method)


@pytest.mark.parametrize("method", ["events", "radius"])
@pytest.mark.parametrize("law", [(0.5, 0.3, 0.2), (0.9, 0.1, 0.0), (1 / 3, 1 / 3, 1 / 3)])
def test_coverage_is_exact_over_every_outcome(method, law):
    """Summed over all outcomes of 12 draws from four true laws: the interval misses the true TV with mass <= alpha."""
    alpha = 0.05
    for true in [law, (0.2, 0.3, 0.5), (0.0, 0.5, 0.5), (1.0, 0.0, 0.0)]:
        tv = 0.5 * sum(abs(a - b) for a, b in zip(true, law))
        missed = 0.0
        for counts in outcomes(12, 3):
            interval = deviation_interval(np.array(counts), law, alpha, method).interval
            if not interval.lower - 1e-12 <= tv <= interval.upper + 1e-12:
                missed += probability(counts, true)
        assert missed <= alpha


def test_power_of_a_design_is_exact_for_two_tokens():
    """The promised power, summed over the binomial law of every outcome, on both sides; half the size is not enough."""
    p, deviation, alpha, miss = 0.3, 0.1, 0.01, 0.02
    planned = design([p, 1 - p], deviation, alpha, miss)

    def power(n, x):
        k = np.arange(n + 1)
        hit = rejects(np.stack([k, n - k], axis=1), [p, 1 - p], alpha, planned.method)
        return sum(comb(n, int(i)) * x**i * (1 - x) ** (n - i) for i in map(int, k[hit]))

    for x in (p - deviation, p + deviation):
        assert power(planned.n, x) >= 1 - miss
    assert power(planned.n, p) <= alpha
    assert power(planned.n // 2, p + deviation) < 1 - miss


@given(law=laws(min_size=2, max_size=6), data=st.data())
def test_rejection_is_a_positive_lower_bound(law, data):
    """The fast test of whole simulations and the interval agree, for both methods; the interval holds the estimate."""
    counts = np.array(data.draw(st.lists(st.integers(0, 60), min_size=len(law), max_size=len(law)).filter(sum)))
    alpha = data.draw(st.sampled_from([0.2, 0.01, 1e-4]))
    for method in ("events", "radius"):
        found = deviation_interval(counts, law, alpha, method)
        assert found.rejected == bool(rejects(counts, law, alpha, method))
        assert found.interval.lower <= found.interval.estimate <= found.interval.upper <= 1
        if found.rejected:
            assert found.observed - found.claimed >= found.interval.lower - 1e-12


def test_the_cheaper_method_is_designed():
    few, many = design(np.full(4, 0.25), 0.05, 1e-3, 1e-4), design(np.full(27, 1 / 27), 0.05, 1e-3, 1e-4)
    assert few.method == "events"
    assert many.method == "radius"
    assert len(np.full(27, 1 / 27)) > EVENT_CELLS
    assert few.n < many.n


@pytest.mark.parametrize("bad", [{"deviation": 0}, {"alpha": 1}, {"miss": -0.1}])
def test_rates_outside_their_range_are_refused(bad):
    with pytest.raises(UsageError, match="strictly between 0 and 1"):
        design([0.5, 0.5], **{"deviation": 0.1, "alpha": 0.01, "miss": 0.01, **bad})
