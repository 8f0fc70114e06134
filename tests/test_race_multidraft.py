"""Several drafts at one position: golden values, linear programmes, the order between rules."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given

import spectheory as spec
from spectheory import exact, pmf
from spectheory.ledger.multidraft import iid_sets, race_sets, transport
from spectheory.montecarlo import simulate_ranks
from spectheory.testing import assert_rate, lists
from spectheory.theory import ersd
from spectheory.theory.multidraft import kseq_rho, wor_sets


def law(*weights):
    return np.array([F(w) / sum(map(F, weights)) for w in weights], dtype=object)


G4 = law(4, 3, 2, 1), law(1, 1, 1, 1)
G6 = law(*(F(1, i) for i in range(1, 9))), law(*(F(1, i * i) for i in range(1, 9)))


def test_one_token_and_equal_laws():
    one = law(1)
    for m in (1, 3):
        assert ersd.optimal_iid(one, one, m) == 1
        assert ersd.optimal_wor(one, one, m) == 1
        assert ersd.greedy_acceptance(one, one, m) == 1
        assert ersd.kseq_acceptance(one, one, m) == pytest.approx(1)
        assert ersd.recursive_rejection(one, one, m, replacement=False) == 1
    assert ersd.kseq_acceptance(*G4[:1], G4[0], 2) == pytest.approx(1)


def test_disjoint_supports_accept_nothing():
    p, q = law(1, 0), law(0, 1)
    for m in (1, 2):
        assert ersd.optimal_iid(p, q, m) == 0
        assert ersd.index_acceptance(p, q, m) == 0
        assert ersd.list_bound(p, q, m) == 0
        assert ersd.recursive_rejection(p, q, m, replacement=True) == 0
        assert ersd.kseq_acceptance(p, q, m) == pytest.approx(0)
    assert ersd.optimal_wor(p, q, 1) == 0


def test_golden_two_drafts():
    accepted = [float(sum(exact.rank_law(*pair)[:2])) for pair in (G4, G6)]
    assert accepted == pytest.approx([0.9520313020313, 0.9060430409043], abs=1e-10)
    assert ersd.optimal_iid(*G4, 2) == 1
    assert ersd.kseq_acceptance(*G4, 2) == pytest.approx(0.9204926287256, abs=1e-10)
    assert ersd.recursive_rejection(*G4, 2, replacement=True) == F(9, 10)
    assert ersd.recursive_rejection(*G4, 2, replacement=False) == F(11, 12)
    assert float(ersd.optimal_iid(*G6, 2)) == pytest.approx(0.8804622751218, abs=1e-10)
    assert float(ersd.optimal_wor(*G6, 2)) == pytest.approx(0.9754684454799, abs=1e-10)
    assert float(ersd.greedy_acceptance(*G6, 2)) == pytest.approx(0.9611091322371, abs=1e-10)
    assert ersd.kseq_acceptance(*G6, 2) == pytest.approx(0.81223553788, abs=1e-10)


@given(lists(4, 3))
def test_the_canonical_two_draft_formula(instance):
    """min over S of P(S) + Q(S^c)^2 + 2 Q(S) Q(S^c), over ALL sets S, equals the prefix formula (Khisti et al.)."""
    p, q, _ = instance
    values = []
    for mask in range(1 << len(p)):
        s = np.array([bool(mask >> i & 1) for i in range(len(p))])
        inside, outside = q[s].sum() + F(0), q[~s].sum() + F(0)
        values.append(p[s].sum() + outside**2 + 2 * inside * outside)
    assert ersd.optimal_iid(p, q, 2) == min(values)


@given(lists(4, 3))
def test_values_are_those_of_the_linear_programme(instance):
    p, q, m = instance
    assert float(ersd.optimal_iid(p, q, m)) == pytest.approx(transport(p, iid_sets(q, m)), abs=1e-8)
    assert float(ersd.optimal_wor(p, q, m)) == pytest.approx(transport(p, race_sets(q, m)), abs=1e-8)


@given(lists(4, 4))
def test_orders_that_hold(instance):
    p, q, m = instance
    tv = pmf.total_variation(p, q)
    ranks = exact.rank_law(p, q)
    ours = sum(ranks[:m])
    assert (1 - tv) / (1 + tv) <= ranks[0] <= 1 - tv
    assert ersd.list_bound(p, q, m) <= ersd.index_acceptance(p, q, m) <= ours <= ersd.optimal_wor(p, q, m)
    assert ersd.recursive_rejection(p, q, m, replacement=True) <= ersd.optimal_iid(p, q, m)
    assert ersd.recursive_rejection(p, q, m, replacement=False) <= ersd.optimal_wor(p, q, m)
    assert ersd.kseq_acceptance(p, q, m) <= float(ersd.optimal_iid(p, q, m)) + 1e-9
    assert ersd.index_acceptance(p, q, m) <= ersd.optimal_iid(p, q, m)
    assert 1 - 1e-12 <= kseq_rho(p, q, m) <= m


def test_rules_are_not_ordered_in_general():
    """ERSD beats the best i.i.d. rule on G6 and loses to it on G4; greedy drafts beat it on G6 and lose on uniform P."""
    assert sum(exact.rank_law(*G6)[:2]) > ersd.optimal_iid(*G6, 2)
    assert sum(exact.rank_law(*G4)[:2]) < ersd.optimal_iid(*G4, 2)
    assert sum(exact.rank_law(*G6)[:2]) < ersd.greedy_acceptance(*G6, 2)
    p, q = law(1, 1, 4), law(5, 4, 3)
    assert sum(exact.rank_law(p, q)[:2]) > ersd.greedy_acceptance(p, q, 2)


def test_recursive_rejection_is_what_it_says():
    """Its definition, played out: two drafts without replacement. False-alarm rate 1e-9."""
    p, q = (x.astype(float) for x in G6)
    rng, n = np.random.default_rng(3), 40_000
    first = rng.choice(8, size=n, p=q)
    accepted = rng.random(n) < np.minimum(1, p / q)[first]
    rest = pmf.residual(p, q)
    for x in range(8):
        at = np.flatnonzero(~accepted & (first == x))
        left = np.where(np.arange(8) == x, 0, q)
        left /= left.sum()
        second = rng.choice(8, size=len(at), p=left)
        with np.errstate(divide="ignore", invalid="ignore"):
            accepted[at] = rng.random(len(at)) < np.nan_to_num(rest / left)[second]
    assert_rate(int(accepted.sum()), n, float(ersd.recursive_rejection(p, q, 2, replacement=False)))


def test_list_acceptance_by_simulation():
    """False-alarm rate 1e-9 an assert."""
    p, q = (x.astype(float) for x in G6)
    ranks, _ = simulate_ranks(p, q, 50_000, seed=4)
    for m in (1, 2, 4):
        assert_rate(int((ranks <= m).sum()), 50_000, float(exact.rank_law(p, q)[:m].sum()))


def test_peers_come_by_name():
    values = ersd.peers(*(x.astype(float) for x in G6), 2)
    assert values["K-SEQ"] == pytest.approx(0.81223553788, abs=1e-10)
    assert values["greedy drafts"] == pytest.approx(0.9611091322371, abs=1e-10)


def test_bad_lists():
    with pytest.raises(spec.UsageError, match="m >= 1"):
        ersd.optimal_iid(*G4, 0)
    with pytest.raises(spec.CostError, match="V = 16"):
        ersd.optimal_wor(np.ones(17) / 17, np.ones(17) / 17, 2)
    assert wor_sets(law(1, 1), 5).tolist() == [0, 0, 0, 1]
