"""The nucleus: exact semantics at the boundary, where real systems disagree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import spectheory as spec
from spectheory.models import FAMILIES, synthetic_pairs
from spectheory.pmf import nucleus, nucleus_is_ambiguous, nucleus_size, top_p
from spectheory.testing import rational_laws, top_ps


@pytest.mark.parametrize(
    ("p", "threshold", "kept", "ambiguous"),
    [
        ([1.0], 0.5, [0], False),
        ([0.5, 0.35, 0.1, 0.05], 0.9, [0, 1, 2], False),
        ([0.3, 0.1, 0.1, 0.5], 0.8, [0, 3], True),
        ([0.1] * 10, 0.8, list(range(8)), True),
        ([0.25] * 4, 0.0, [], False),
        ([0.5, 0.0, 0.5], 1.0, [0, 2], False),
        ([0.5, 0.0, 0.5], 1e-300, [0], False),
    ],
)
def test_boundary_cases(xp_array, p, threshold, kept, ambiguous):
    mask = nucleus(xp_array(p), threshold)
    assert np.flatnonzero(np.asarray(mask)).tolist() == kept
    assert bool(nucleus_is_ambiguous(xp_array(p), threshold)) is ambiguous


def test_uniform_over_a_real_vocabulary(xp_array):
    """Sequential float32 sums reach only .998325 and keep all; the right answer is ceil(.999 V)."""
    assert int(nucleus_size(xp_array(np.full(151_936, 1 / 151_936)), 0.999)) == 151_785


@given(rational_laws(max_size=12), top_ps())
def test_exact_nucleus_is_the_walk_down_the_sorted_tokens(p, threshold):
    assert set(np.flatnonzero(nucleus(p, threshold))) == reference.nucleus(p, threshold)
    assert nucleus_is_ambiguous(p, threshold) is False


@given(rational_laws(max_size=12), top_ps())
def test_float_nucleus_is_the_exact_one(p, threshold):
    """The tolerance absorbs the rounding of the stored probabilities, at the boundary too."""
    assert (nucleus(p.astype(float), float(threshold)) == nucleus(p, threshold)).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8, 0.9, 0.999])
def test_torch_and_batches_agree(family, threshold):
    import torch

    p, _ = synthetic_pairs(family, 6, 33)
    ours = nucleus(p, threshold)
    assert (nucleus(torch.tensor(p), threshold).numpy() == ours).all()
    assert all((nucleus(row, threshold) == mask).all() for row, mask in zip(p, ours))


def test_a_float_threshold_means_the_decimal_it_prints_as():
    p = np.array([Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], dtype=object)
    assert Fraction(0.8) > Fraction(4, 5)
    assert nucleus(p, 0.8).tolist() == nucleus(p, Fraction(4, 5)).tolist() == [True, True, False]


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), True, "0.9", None])
def test_thresholds_outside_the_unit_interval(bad):
    with pytest.raises(spec.UsageError, match="top_p must"):
        nucleus([0.5, 0.5], bad)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_the_top_p_warp_never_empties_a_row(weights):
    p = np.array(weights) / sum(weights)
    assert top_p(p, 0.0).tolist() == np.eye(len(p))[int(p.argmax())].tolist()
