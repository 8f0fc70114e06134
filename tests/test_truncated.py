"""Certified intervals from truncated rows always hold the true value, and close where the tails were recorded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectheory as spec
from spectheory import pmf
from spectheory.models import FAMILIES, synthetic_pairs
from spectheory.protocols import Truncated
from spectheory.testing import pairs, top_ps
from spectheory.theory import nsd


def truncate(p, q, top, union=True):
    """Keep the top of each side; `union` records both sides' values of every kept token, else only each side's own."""
    keep_p, keep_q = (np.argsort(-x, kind="stable")[:top] for x in (p, q))
    ids = np.union1d(keep_p, keep_q)
    has_p, has_q = (np.isin(ids, ids if union else keep) for keep in (keep_p, keep_q))
    known_p, known_q = np.where(has_p, p[ids], np.nan), np.where(has_q, q[ids], np.nan)
    rest = np.setdiff1d(np.arange(len(p)), ids)
    cut = lambda x, keep: float(x[np.setdiff1d(np.arange(len(x)), keep)].max(initial=0))  # noqa: E731
    return Truncated(
        ids,
        known_p,
        known_q,
        p_tail=1 - np.nansum(known_p),
        q_tail=1 - np.nansum(known_q),
        p_cut=np.array(cut(p, ids[has_p])),
        q_cut=np.array(cut(q, ids[has_q])),
        excess=np.array(np.maximum(q - p, 0)[rest].sum()) if union else None,
        deficit=np.array(np.maximum(p - q, 0)[rest].sum()) if union else None,
    )


@given(pairs(min_size=1, max_size=10), st.integers(1, 10), st.booleans(), top_ps())
def test_the_truth_lies_inside(pair, top, union, threshold):
    p, q = pair
    rows = truncate(p, q, top, union)
    slack = 1e-12
    low, high = pmf.truncated_total_variation(rows)
    assert low - slack <= pmf.total_variation(p, q) <= high + slack
    if union:
        assert high - low <= slack
    low, high = pmf.truncated_nucleus_deviation(rows, float(threshold))
    assert low - slack <= nsd.step_deviation(p, q, float(threshold)) <= high + slack
    low, high = pmf.truncated_kl(rows)
    assert low - slack <= pmf.kl(p, q) <= high


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("union", [True, False])
def test_families_and_width(family, union):
    """With everything kept the interval is a point; with the head kept it brackets."""
    p, q = synthetic_pairs(family, 6, 50)
    for a, b in zip(p, q):
        for top in (5, 50):
            rows = truncate(a, b, top, union)
            low, high = pmf.truncated_nucleus_deviation(rows, 0.8)
            assert low - 1e-12 <= nsd.step_deviation(a, b, 0.8) <= high + 1e-12
            if top == 50:
                assert high - low < 1e-12


def test_padding_and_thresholds():
    rows = Truncated(
        *(np.array(x) for x in ([[0, 1, -1]], [[0.6, 0.3, 0.0]], [[0.2, 0.7, 0.0]], [0.1], [0.1], [0.05], [0.05]))
    )
    low, high = pmf.truncated_total_variation(rows)
    assert (low[0], high[0]) == pytest.approx((0.4, 0.5))
    assert pmf.truncated_nucleus_deviation(rows, 0.0)[1][0] == 0
    with pytest.raises(spec.UsageError, match="top_p"):
        pmf.truncated_nucleus_deviation(rows, 2.0)
