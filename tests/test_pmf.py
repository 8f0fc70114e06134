"""Laws: the hostile inputs of public reports, reference definitions, and agreement of NumPy, torch and Fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import reference
import scipy.special
from hypothesis import given

import spectheory as spec
from spectheory import pmf
from spectheory.models import FAMILIES, synthetic_pairs
from spectheory.testing import pairs, rational_pairs

INF = math.inf


# --- cases/inputs: each tool that broke on one of these reported something else ---


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, 0.5], [np.nan, np.nan]], "q row 1, token 0 is NaN"),
        ([[0.5, 0.5], [0.5, np.nan]], "q row 1, token 1 is NaN"),
        ([[0.5, INF]], "q row 0, token 1 is infinite"),
        ([[1.5, -0.5]], "q row 0, token 1 has negative mass -0.5"),
        ([[0.5, 0.5], [0.5, 0.4]], r"q row 1 sums to 0.9, not 1 \(tolerance 1e-09\)"),
        ([[0.0, 0.0]], "q row 0 sums to 0"),
        ([], "q has no tokens"),
        (0.5, "q has no tokens"),
    ],
)
def test_bad_laws_are_named(xp_array, rows, message):
    with pytest.raises(spec.DataError, match=message):
        pmf.validate(xp_array(rows), "q")


def test_a_wrong_vocabulary_is_named():
    with pytest.raises(spec.DataError, match="p has 3 tokens a row, not the vocabulary's 4"):
        pmf.validate([0.2, 0.3, 0.5], vocab_size=4)
    with pytest.raises(spec.DataError, match="map the draft's ids"):
        pmf.validate_pair([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(spec.DataError, match="not the same rows"):
        pmf.validate_pair(np.full((2, 2), 0.5), np.full((3, 2), 0.5))


def test_fractions_must_sum_to_exactly_one():
    third = Fraction(1, 3)
    assert pmf.validate(np.array([third] * 3, dtype=object))[0] == third
    with pytest.raises(spec.DataError, match="tolerance 0"):
        pmf.validate(np.array([third, third], dtype=object))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_stored_precision_sets_the_tolerance_and_rows_are_renormalised(dtype):
    p = pmf.softmax(np.random.default_rng(0).normal(0, 3, (4, 1000))).astype(dtype)
    law = pmf.validate(p)
    assert law.dtype == np.float64
    assert law.sum(axis=1) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.0, np.nan]], "logits row 0, token 1 is NaN"),
        ([[0.0, 0.0], [INF, 0.0]], r"logits row 1, token 0 is \+inf"),
        ([[0.0, 0.0], [-INF, -INF]], "logits row 1 is -inf everywhere"),
        ([], "logits has no tokens"),
    ],
)
def test_bad_logits_are_named(xp_array, rows, message):
    with pytest.raises(spec.DataError, match=message):
        pmf.softmax(xp_array(rows))


def test_padding_is_masked_by_the_vocabulary_size(xp_array):
    z = xp_array([-1.0, -0.5, -2.0, 0.0, 0.0])
    assert float(pmf.softmax(z)[3:].sum()) == pytest.approx(0.643, abs=5e-4)
    assert np.asarray(pmf.softmax(pmf.validate_logits(z, vocab_size=3))) == pytest.approx(
        scipy.special.softmax([-1, -0.5, -2])
    )
    with pytest.raises(spec.DataError, match="5 columns, fewer than the vocabulary's 6"):
        pmf.validate_logits(z, vocab_size=6)


def test_softmax_at_extreme_temperatures(xp_array):
    z = xp_array([[1.0, 3.0, 3.0, -INF], [1e4, -1e4, 0.0, 0.0]])
    assert np.asarray(pmf.softmax(z, 0)).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]
    for tiny in (1e-3, 1e-300, 5e-324):
        assert np.asarray(pmf.softmax(z, tiny)) == pytest.approx(np.array([[0, 0.5, 0.5, 0], [1, 0, 0, 0]]))
    assert np.asarray(pmf.log_softmax(z, 0))[0].tolist() == [-INF, 0, -INF, -INF]
    for bad in (-1, INF, math.nan):
        with pytest.raises(spec.UsageError, match="temperature"):
            pmf.softmax(z, bad)


def test_entropy_of_minus_infinite_logits_is_zero(xp_array):
    assert float(pmf.entropy(pmf.softmax(xp_array([0.0, -INF])))) == 0


def test_top_k_keeps_exactly_k_ties_by_index(xp_array):
    assert np.asarray(pmf.top_k(xp_array([0.4, 0.3, 0.3, 0.0]), 2)) == pytest.approx([4 / 7, 3 / 7, 0, 0])
    assert np.asarray(pmf.top_k(xp_array([0.4, 0.6]), 9)) == pytest.approx([0.4, 0.6])
    with pytest.raises(spec.UsageError, match="top_k"):
        pmf.top_k([0.4, 0.6], 0)


def test_the_order_of_warps_matters_and_is_k_then_p():
    p = np.array([0.35, 0.25, 0.2, 0.05] + [0.03] * 5)
    ours = pmf.warp(np.log(p), top_k=4, top_p=0.82)
    other = pmf.top_k(pmf.top_p(p, 0.82), 4)
    assert pmf.total_variation(ours, other) == pytest.approx(0.058824, abs=5e-7)
    assert pmf.total_variation([0.5, 0.3, 0.2], pmf.top_p([0.5, 0.3, 0.2], 0.7)) == pytest.approx(0.2)
    assert pmf.total_variation([0.6, 0.3, 0.06, 0.04], pmf.min_p([0.6, 0.3, 0.06, 0.04], 0.2)) == pytest.approx(0.1)
    with pytest.raises(spec.UsageError, match="min_p"):
        pmf.min_p(p, 1.5)


def test_residual_of_equal_laws_is_the_target(xp_array):
    p = xp_array([[0.5, 0.5], [1.0, 0.0]])
    assert np.asarray(pmf.residual(p, p)).tolist() == np.asarray(p).tolist()


@pytest.mark.parametrize("tokens", [[-1], [4], [0, 1, 9]])
def test_ids_out_of_range_do_not_wrap(tokens):
    with pytest.raises(spec.DataError, match=r"outside \[0, 4\)"):
        pmf.check_ids(np.array(tokens), 4)


def test_a_drafted_token_without_draft_mass_is_a_contract_violation():
    with pytest.raises(spec.DataError, match="token 1 at position 1 has draft probability 0"):
        pmf.check_ids(np.array([0, 1]), 2, q=np.array([[1.0, 0.0], [1.0, 0.0]]))


# --- divergences ---


@pytest.mark.parametrize(
    ("p", "q", "expected"),  # kl, renyi 0, renyi 1/2, renyi 2, renyi inf, hellinger, chi2
    [
        ([1.0], [1.0], (0, 0, 0, 0, 0, 0, 0)),
        ([0.5, 0.5], [0.5, 0.5], (0, 0, 0, 0, 0, 0, 0)),
        ([1.0, 0.0], [0.0, 1.0], (INF, INF, INF, INF, INF, 1, INF)),
        ([1.0, 0.0], [0.5, 0.5], (math.log(2),) * 5 + (math.sqrt(1 - math.sqrt(0.5)), 1)),
        ([0.5, 0.5], [1.0, 0.0], (INF, 0, math.log(2), INF, INF, math.sqrt(1 - math.sqrt(0.5)), INF)),
    ],
)
def test_divergences_on_degenerate_pairs(xp_array, p, q, expected):
    p, q = xp_array(p), xp_array(q)
    values = [pmf.kl(p, q), *(pmf.renyi(p, q, a) for a in (0, 0.5, 2, INF)), pmf.hellinger(p, q), pmf.chi_square(p, q)]
    assert [float(v) for v in values] == pytest.approx(expected, abs=1e-12)


@given(pairs(max_size=8))
def test_divergences_against_their_definitions(pair):
    p, q = pair
    tv = reference.total_variation(p, q)
    assert pmf.total_variation(p, q) == pytest.approx(tv, abs=1e-14)
    assert pmf.overlap(p, q) == pytest.approx(1 - tv, abs=1e-14)
    assert pmf.kl(p, q) == pytest.approx(scipy.special.rel_entr(p, q).sum(), abs=1e-13)
    assert pmf.renyi(p, q, 1) == pmf.kl(p, q)
    assert pmf.entropy(p) == pytest.approx(scipy.special.entr(p).sum(), abs=1e-14)
    assert pmf.hellinger(p, q) == pytest.approx(math.sqrt(max(0, 1 - np.sqrt(p * q).sum())), abs=1e-7)
    orders = [pmf.renyi(p, q, a) for a in (0, 0.3, 0.7, 1, 1.5, 3, INF)]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(orders))
    if np.isfinite(pmf.renyi(p, q, 2)):
        assert math.log1p(pmf.chi_square(p, q)) == pytest.approx(pmf.renyi(p, q, 2), abs=1e-12)


def test_kl_keeps_its_digits_on_near_identical_laws():
    """A perturbation of 1e-9: KL is about 5e-19, which the textbook sum loses in rounding at 1e-16."""
    p = np.array([0.5, 0.5])
    q = np.array([0.5 * (1 + 1e-9), 0.5 * (1 - 1e-9)])
    assert pmf.kl(p, q) == pytest.approx(5e-19, rel=1e-6)


@given(rational_pairs())
def test_rational_results_are_rational(pair):
    p, q = pair
    for value in (pmf.total_variation(p, q), pmf.overlap(p, q), pmf.residual(p, q)[0]):
        assert isinstance(value, Fraction | int)
    assert sum(pmf.residual(p, q)) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_torch_agrees_with_numpy(family):
    import torch

    p, q = synthetic_pairs(family, 5, 40)
    a, b = torch.tensor(p), torch.tensor(q)
    for f in (pmf.total_variation, pmf.overlap, pmf.kl, pmf.hellinger, pmf.chi_square, pmf.residual):
        assert f(a, b).numpy() == pytest.approx(f(p, q), rel=1e-12, abs=1e-14), f.__name__
    for alpha in (0, 0.5, 2, INF):
        assert pmf.renyi(a, b, alpha).numpy() == pytest.approx(pmf.renyi(p, q, alpha), rel=1e-10, abs=1e-12)
    assert pmf.top_k(a, 3).numpy() == pytest.approx(pmf.top_k(p, 3), abs=1e-15)
    assert pmf.min_p(a, 0.1).numpy() == pytest.approx(pmf.min_p(p, 0.1), abs=1e-15)


def test_scalars_are_floats_and_batches_are_arrays():
    p, q = np.array([[0.5, 0.5], [1, 0]]), np.array([[0.2, 0.8], [1, 0]])
    assert isinstance(pmf.total_variation(p[0], q[0]), float)
    assert pmf.total_variation(p, q).shape == (2,)
    assert pmf.renyi(p, q, 3).shape == (2,)
    with pytest.raises(spec.UsageError, match="Renyi order"):
        pmf.renyi(p, q, -1)
