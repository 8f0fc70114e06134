"""NSD's theorems over every synthetic family: the identity to 1e-12 in float64 and exactly in Fractions, and the bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import find, settings
from hypothesis.errors import NoSuchExample

import spectheory as spec
from spectheory.models import FAMILIES, synthetic_pairs
from spectheory.pmf import kl, nucleus_size, total_variation
from spectheory.testing import nuclei
from spectheory.theory import lenience, nsd, standard
from spectheory.verifiers import Lenience, Nucleus, ResampleTarget, Standard

TOP_PS = (0.0, 0.1, 0.5, 0.8, 0.9, 0.999, 1.0)
SIZES = (1, 2, 3, 5, 8, 16, 33, 64)


@pytest.mark.parametrize("family", FAMILIES)
def test_deviation_is_the_excess_in_the_nucleus(family):
    """TV(output law, p) = Delta (N1), acceptance 1 - D + Delta (N2), the law itself (N3), and all bounds of N5 and N6."""
    for size in SIZES:
        p, q = synthetic_pairs(family, 8, size, seed=size)
        distance = total_variation(p, q)
        previous = np.zeros(8)
        for top_p in TOP_PS:
            step = spec.exact.step(Nucleus(top_p), p, q)
            delta = nsd.step_deviation(p, q, top_p)
            assert step.deviation == pytest.approx(delta, abs=1e-12)
            assert step.acceptance_rate == pytest.approx(nsd.acceptance_rate(p, q, top_p), abs=1e-12)
            assert step.output == pytest.approx(nsd.output_law(p, q, top_p), abs=1e-12)
            assert (delta >= previous - 1e-14).all()
            assert (delta <= distance + 1e-14).all()
            assert (step.output >= nsd.least_ratio(p, q, top_p)[:, None] * p - 1e-12).all()
            assert (step.output <= np.maximum(nsd.largest_ratio(p, q, top_p)[:, None] * p, 0) + 1e-12).all()
            assert (step.kl_output_target <= nsd.kl_output_bound(p, q, top_p) + 1e-9).all()
            previous = delta


@pytest.mark.parametrize("family", FAMILIES)
def test_the_identity_is_exact_in_fractions(family):
    for size in (1, 2, 5, 16, 64):
        p, q = (reference.rational(x[0]) for x in synthetic_pairs(family, 1, size, seed=size))
        for top_p in (Fraction(0), Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(1)):
            step = spec.exact.step(Nucleus(top_p), p, q)
            assert step.deviation == nsd.step_deviation(p, q, top_p)
            assert step.acceptance_rate == nsd.acceptance_rate(p, q, top_p)
            assert (step.output == nsd.output_law(p, q, top_p)).all()
        assert (spec.exact.output_law(Standard(), p, q) == p).all()


def test_the_canonical_pair(c4):
    step = spec.exact.step(Nucleus(0.8), *c4)
    assert step.output == pytest.approx([0.22, 0.5, 0.18, 0.1], abs=1e-15)
    assert (step.deviation, step.acceptance_rate) == pytest.approx((0.3, 0.8), abs=1e-15)
    assert (step.kl_target_output, step.kl_output_target) == pytest.approx((0.209124, 0.234673), abs=5e-7)
    assert nsd.kl_target_bound(*c4, 0.8) == pytest.approx(0.916291, abs=5e-7)


def test_resampling_the_target_is_worse(c4):
    """N4 on the canonical pair: the same acceptance with residual p deviates by .36, not .3."""

    class FromTarget(Nucleus):
        def residual(self, p, q, rejected=None):
            return p

    assert spec.exact.step_deviation(FromTarget(0.8), *c4) == pytest.approx(0.36, abs=1e-15)
    assert spec.exact.least_deviation(FromTarget(0.8), *c4) == pytest.approx(0.3, abs=1e-15)
    assert spec.exact.output_law(Nucleus(0.8), *c4) == pytest.approx(
        c4[1] * Nucleus(0.8).acceptance(*c4) + 0.2 * spec.exact.best_residual(Nucleus(0.8), *c4)
    )


def resampling_is_worse(i):
    p, q, top_p = i
    strictly_between = 0 < nsd.step_deviation(p, q, top_p) < total_variation(p, q)
    return strictly_between and not nsd.residual_is_optimal(p, q, top_p, p)


def test_resampling_has_a_minimal_witness():
    """Three tokens show it; with two it cannot be shown, as one token holds the whole excess (Delta is 0 or D)."""
    config = settings(max_examples=5000, database=None, derandomize=True)
    p, q, top_p = find(nuclei(max_size=3), resampling_is_worse, settings=config)
    assert len(p) == 3
    resampled = q * Nucleus(top_p).acceptance(p, q) + (1 - nsd.acceptance_rate(p, q, top_p)) * p
    assert total_variation(resampled, p) > nsd.step_deviation(p, q, top_p)
    with pytest.raises(NoSuchExample):
        find(nuclei(max_size=2), resampling_is_worse, settings=settings(config, max_examples=500))


def test_top_p_jumps_at_zero_and_degenerates_at_one(c4):
    p, q = c4
    assert nsd.step_deviation(p[::-1], q[::-1], 0.0) == 0
    assert nsd.step_deviation(q, p, 0.0) == 0
    assert nsd.step_deviation(q, p, 1e-12) == nsd.step_deviation(q, p, 0.5) == 0
    assert nsd.step_deviation([0.6, 0.4], [0.8, 0.2], 1e-12) == pytest.approx(0.2)
    assert spec.exact.output_law(Nucleus(1.0), p, q) == pytest.approx(q)
    assert nsd.degenerates_to_draft(p, q)


def test_infinite_divergence_exactly_when_stated():
    p, q = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    assert kl(p, spec.exact.output_law(Nucleus(0.5), p, q)) == np.inf
    assert nsd.kl_target_bound(p, q, 0.5) == np.inf
    assert nsd.kl_target_is_infinite(p, q, 0.5)
    assert not nsd.kl_target_is_infinite(p, q, 0.0)


def test_torch_runs_the_closed_forms(c4):
    import torch

    p, q = synthetic_pairs("dirichlet-1", 4, 50)
    a, b = torch.tensor(p), torch.tensor(q)
    for f in (nsd.step_deviation, nsd.acceptance_rate, nsd.output_law, nsd.kl_target_bound, nsd.largest_ratio):
        assert f(a, b, 0.8).numpy() == pytest.approx(f(p, q, 0.8), abs=1e-13), f.__name__


def test_lenience_golden_pair():
    p, q = np.array([0.5, 0.4, 0.1]), np.array([0.2, 0.45, 0.35])
    assert spec.exact.step_deviation(Lenience(0.5), p, q) == pytest.approx(0.15)
    assert spec.exact.step_deviation(Lenience(0.5, "scaled"), p, q) == pytest.approx(0.195652, abs=5e-7)
    assert lenience.step_deviation(p, q, 0.5) == pytest.approx(0.15)
    assert spec.exact.step_deviation(Lenience(1.0), p, q) == pytest.approx(0, abs=1e-15)


def test_resample_target_deviates_on_the_canonical_pair(c4):
    assert spec.exact.output_law(ResampleTarget(), *c4) == pytest.approx([0.3, 0.3, 0.25, 0.15])


def test_efficiency_golden_values():
    tokens = standard.expected_tokens(0.8, 4)
    assert tokens == pytest.approx(3.3616, abs=1e-12)
    assert standard.expected_tokens(Fraction(4, 5), 4) == Fraction(2101, 625)
    assert standard.expected_tokens(1, 4) == 5
    assert standard.speedup(tokens, 4, 0.05) == pytest.approx(2.801333, abs=5e-7)
    assert standard.speedup_cap(4, 0.05) == pytest.approx(4.166667, abs=5e-7)
    for size, ratio in ((5, 0.032558), (8, 0.093023), (16, 0.143411)):
        assert standard.largest_cost_ratio(5.16, size) == pytest.approx(ratio, abs=5e-7)
        assert standard.speedup_cap(size, standard.largest_cost_ratio(5.16, size)) == pytest.approx(5.16)
    with pytest.raises(spec.UsageError, match="block_size"):
        standard.expected_tokens(0.5, -1)
    with pytest.raises(spec.UsageError, match="cost_ratio"):
        standard.speedup(2, 4, -0.1)


def test_uniform_nuclei_at_a_real_vocabulary():
    """One row of 49,152 tokens: the identity still holds to 1e-12."""
    p, q = synthetic_pairs("zipf", 1, 49_152)
    assert nucleus_size(p, 0.9).shape == (1,)
    assert spec.exact.step_deviation(Nucleus(0.9), p, q) == pytest.approx(nsd.step_deviation(p, q, 0.9), abs=1e-12)
