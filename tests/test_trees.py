"""Optimal draft trees and the bounds on what they buy: degenerate laws, golden values, brute force, tightness."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectheory as spec
from spectheory import exact
from spectheory.ledger.trees import all_trees, brute_tokens
from spectheory.montecarlo import rows_as_laws, simulate_chain, simulate_standard, simulate_tree
from spectheory.testing import budgets, rank_laws
from spectheory.theory import ersd, trees

G4 = np.array([F(2181, 2860), F(5689, 30030), F(213, 5005), F(5, 924)], dtype=object)
_P, _Q = ([F(1, i) for i in range(1, 9)], [F(1, i * i) for i in range(1, 9)])
G6 = exact.rank_law(
    np.array([x / sum(_P) for x in _P], dtype=object), np.array([x / sum(_Q) for x in _Q], dtype=object)
)


def test_certain_ranks():
    """A rank law with a one (and zeros): a chain of that rank, k + 1 tokens, infinite bounds that print so."""
    tree = ersd.optimal_tree([0, 1], 3)
    assert tree.parent.tolist() == [-1, 0, 1]
    assert tree.rank.tolist() == [2, 2, 2]
    assert tree.prob.tolist() == [1, 1, 1]
    for law in ([1.0], [0.0, 1.0], [1.0, 0.0]):
        assert ersd.expected_tokens(law, 7) == 8
        bounds = ersd.speedup_bounds(law, 7, 2)
        assert all(bounds[name].upper == math.inf for name in ("paper", "leaf", "vfree"))
        assert "inf" in str(bounds["leaf"])
        assert bounds["lower"].lower == 8


def test_no_drafts():
    assert ersd.optimal_tree([0.5, 0.5], 0).parent.shape == (0,)
    assert ersd.expected_tokens([0.5, 0.5], 0) == 1
    assert ersd.speedup_bounds([0.5, 0.5], 0, 2)["leaf"].upper == pytest.approx(1)


@pytest.mark.parametrize(
    ("law", "k", "error", "message"),
    [
        ([0.5, 0.5], -1, spec.UsageError, "k must be"),
        ([0.5, 0.5], 1.5, spec.UsageError, "k must be"),
        ([0.5, 0.6], 1, spec.DataError, "sums to 1.1"),
        ([1.5, -0.5], 1, spec.DataError, "rank 1: 1.5"),
        ([np.nan, 1.0], 1, spec.DataError, "rank 1: nan"),
        ([[0.5, 0.5]], 1, spec.DataError, "one row"),
        ([], 1, spec.DataError, "one row"),
    ],
)
def test_bad_rank_laws_and_budgets_are_named(law, k, error, message):
    for call in (ersd.optimal_tree, ersd.expected_tokens, lambda x, k: ersd.speedup_bounds(x, k, 5)):
        with pytest.raises(error, match=message):
            call(np.array(law), k)


def test_a_vocabulary_smaller_than_the_ranks_is_refused():
    with pytest.raises(spec.UsageError, match="only 2 tokens"):
        ersd.speedup_bounds([0.5, 0.3, 0.2], 1, 2)


def test_siblings_by_probability_not_by_rank():
    """P = (0, 1), Q = (.9, .1): rank 2 is the likelier one."""
    law = exact.rank_law(np.array([F(0), F(1)], dtype=object), np.array([F(9, 10), F(1, 10)], dtype=object))
    assert law.tolist() == [F(1, 10), F(9, 10)]
    assert ersd.optimal_tree(law, 1).rank.tolist() == [2]
    assert ersd.expected_tokens(law, 1) == F(19, 10)


# k, E*, paper, leaf, V-free, m
GOLDEN = [
    (G4, 4, 1, 1.76258741258741, 3.038105422257, 2.843013403635, 2.004477714598, 1),
    (G4, 4, 4, 3.12578998618379, 4.376824393228, 4.050807229677, 3.269162345109, 1),
    (G4, 4, 16, 4.82482519235768, 6.164784621931, 5.772845605645, 5.325950879096, 2),
    (G6, 8, 4, 2.67322953890726, 4.175911247212, 4.056640295743, 2.908551549746, 2),
    (G6, 8, 16, 4.0325402982538, 5.561258112715, 5.419570051909, 4.522226339507, 3),
]


@pytest.mark.parametrize(("law", "vocab", "k", "tokens", "paper", "leaf", "vfree", "m"), GOLDEN)
def test_golden_trees_and_bounds(law, vocab, k, tokens, paper, leaf, vfree, m):
    assert float(ersd.expected_tokens(law, k)) == pytest.approx(tokens, abs=1e-10)
    bounds = ersd.speedup_bounds(law, k, vocab)
    assert bounds["paper"].upper == pytest.approx(paper, abs=1e-10)
    assert bounds["leaf"].upper == pytest.approx(leaf, abs=1e-10)
    assert bounds["vfree"].upper == pytest.approx(vfree, abs=1e-10)
    assert trees.vfree(law, k)[1] == m


@given(budgets(3, 5))
def test_heap_tree_is_the_best_of_all_trees(instance):
    law, k = instance
    assert ersd.expected_tokens(law, k) == brute_tokens(law, k)


def test_brute_force_sees_every_tree():
    """Prefix-closed sets of k nodes over s ranks number C(s (k + 1), k + 1) / ((s - 1)(k + 1) + 1), less the empty rank."""
    assert len(list(all_trees(2, 3))) == 14  # a Catalan number: binary trees with 4 internal nodes, the root among them
    assert len(list(all_trees(3, 2))) == 12


@given(rank_laws(5), st.integers(0, 40))
def test_tree_is_consistent(law, k):
    tree = ersd.optimal_tree(law, k)
    assert len(tree.parent) == k
    for v in range(k):
        a = int(tree.parent[v])
        assert a < v
        assert tree.prob[v] == (1 if a < 0 else tree.prob[a]) * law[tree.rank[v] - 1]
        assert v == 0 or tree.prob[v] <= tree.prob[v - 1]
    assert len(set(zip(tree.parent.tolist(), tree.rank.tolist()))) == k


@given(st.lists(rank_laws(3), min_size=1, max_size=3), st.integers(0, 12))
def test_forest_is_the_best_split_of_the_budget(laws, k):
    forest = ersd.optimal_forest(laws, k)
    best = [0] + [None] * k
    for law in laws:  # the best sum over all splits, one request at a time
        gains = [ersd.expected_tokens(law, j) - 1 for j in range(k + 1)]
        best = [max(best[i] + gains[j - i] for i in range(j + 1) if best[i] is not None) for j in range(k + 1)]
    assert sum(forest.prob) == best[k]
    for b, law in enumerate(laws):
        mine = [p for p, r in zip(forest.prob, forest.request) if r == b]
        assert sum(mine) == ersd.expected_tokens(law, len(mine)) - 1
        assert all(forest.request[a] == b for a, r in zip(forest.parent, forest.request) if r == b and a >= 0)


@given(budgets(6, 60), st.integers(0, 20))
def test_bound_chain_is_never_violated(instance, spare):
    law, k = instance
    tokens = float(ersd.expected_tokens(law, k))
    bounds = ersd.speedup_bounds(law, k, len(law) + spare)
    assert bounds["lower"].lower <= tokens + 1e-9
    assert tokens <= bounds["vfree"].upper + 1e-9
    assert tokens <= bounds["leaf"].upper + 1e-9 <= bounds["paper"].upper + 2e-9


def test_each_side_is_tight_somewhere():
    """Uniform ranks, complete trees: every leaf is equally probable. V-free: a geometric pair of branches."""
    for s, depth in ((2, 3), (3, 2), (5, 1)):
        k = sum(s**d for d in range(1, depth))  # all inner nodes below the root
        law = np.full(s, F(1, s), dtype=object)
        bounds = ersd.speedup_bounds(law, k, s)
        assert float(ersd.expected_tokens(law, k)) == pytest.approx(depth)
        assert bounds["leaf"].upper == pytest.approx(depth, abs=1e-12)
        assert bounds["vfree"].upper == pytest.approx(depth, abs=1e-12)
    uniform = np.full(4, F(1, 4), dtype=object)
    assert ersd.speedup_bounds(uniform, 0, 4)["paper"].upper == pytest.approx(1, abs=1e-12)
    # lower: at most one ln(1 / p_min) / H below E*, and E* H / ln k tends to 1
    tree = trees.lower_bound(uniform, 4**6), float(ersd.expected_tokens(uniform, 4**6)), trees.leaf_bound(uniform, 4**6)
    assert tree[0] + 1 == pytest.approx(tree[2])
    near = float(ersd.expected_tokens(G4, 200_000)) * 0.684453385470325 / math.log(200_000)
    assert near == pytest.approx(1, abs=0.15)


def test_lower_bound_is_tight_at_certainty_and_reached_in_the_limit():
    gaps = [
        float(ersd.expected_tokens([0.5, 0.5], 2**d)) - trees.lower_bound(np.array([0.5, 0.5]), 2**d) for d in (3, 8)
    ]
    assert all(0 <= g <= 1 + 1e-9 for g in gaps)
    assert trees.lower_bound(np.array([1.0]), 5) == ersd.expected_tokens([1.0], 5)


def test_averaged_bounds_fail_where_contexts_persist():
    """Classes A: P = Q, and B: P = (0, 1), Q = (1/2, 1/2), each w.p. 1/2: 9.5 tokens at k = 16 (E3)."""
    half = np.array([F(1, 2), F(1, 2)], dtype=object)
    a, b = exact.rank_law(half, half), exact.rank_law(np.array([F(0), F(1)], dtype=object), half)
    assert a.tolist() == [1, 0]
    assert b.tolist() == [F(1, 2), F(1, 2)]
    chain = 1 + sum((F(1) + F(1, 2) ** d) / 2 for d in range(1, 17))
    assert float(chain) == pytest.approx(9.5, abs=1e-4)
    averaged = trees.averaged_bound([0.0, math.log(2)], 16, 2)
    mixed = (a + b) / 2
    assert averaged == pytest.approx(8.34, abs=5e-3)
    assert trees.leaf_bound(mixed, 16) == pytest.approx(5.14, abs=5e-3)
    assert averaged < float(chain)
    # the general bound holds: the chain's nodes, with each class's own entropy
    spent = math.fsum(0.5 * 0.5**d * math.log(2) for d in range(17))
    assert spent <= ersd.general_bound(16, 2)


def test_a_million_nodes():
    tree = ersd.optimal_tree(G4.astype(float), 10**6)
    assert len(tree.prob) == 10**6
    assert (np.diff(tree.prob) <= 0).all()


# Monte Carlo of whole calls; each assert is an interval of level 1 - 1e-9.

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
Q = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]])


def flat(p, q):
    return lambda prefixes: (np.broadcast_to(p, (len(prefixes), len(p))), np.broadcast_to(q, (len(prefixes), len(q))))


def test_simulated_calls_have_the_expected_length():
    p, q, k, n = np.array([0.4, 0.3, 0.2, 0.1]), np.full(4, 0.25), 8, 20_000
    law = exact.rank_law(p, q)
    tree = ersd.optimal_tree(law, k)
    walks = simulate_tree(flat(p, q), tree.parent, tree.rank, n, seed=1)
    assert ersd.expected_tokens(law, k) in walks.mean_length(1e-9)
    assert ersd.chain_tokens(law[0], k) in simulate_chain(flat(p, q), k, n, seed=1).mean_length(1e-9)
    assert ersd.chain_tokens(0.8, k) in simulate_standard(flat(p, q), k, n, seed=1).mean_length(1e-9)


def test_simulated_calls_in_varying_contexts_emit_the_target():
    from spectheory.testing import assert_law

    model = spec.models.Tabular(target=P, draft=Q, initial=0)
    tree = ersd.optimal_tree([0.7, 0.2, 0.1], 6)
    first = P[0]
    pairs = (P[0][:, None] * P).ravel()
    for walks in (
        simulate_tree(model.laws, tree.parent, tree.rank, 40_000, seed=2),
        simulate_standard(model.laws, 6, 40_000, seed=2),
    ):
        assert_law(walks.tokens[:, 0], first)
        # every walk that emits a second token, completed by fresh draws from the target, has the target's pair law
        second = walks.tokens[:, 1].copy()
        missing = second < 0
        u = np.random.default_rng(3).random(int(missing.sum()))
        cumulative = np.cumsum(P[walks.tokens[missing, 0]], axis=1)
        second[missing] = (u[:, None] > cumulative).sum(axis=1)
        assert_law(3 * walks.tokens[:, 0] + second, pairs)


def test_simulated_output_does_not_depend_on_the_drafter():
    """Same seed, two drafters and two trees: one committed sequence is a prefix of the other."""
    model = spec.models.Tabular(target=P, draft=Q, initial=0)
    other = spec.models.Tabular(target=P, draft=Q[:, ::-1].copy(), initial=0)
    tree = ersd.optimal_tree([0.6, 0.3, 0.1], 9)
    one = simulate_tree(model.laws, tree.parent, tree.rank, 500, seed=4).tokens
    two = simulate_chain(other.laws, 5, 500, seed=4).tokens
    width = min(one.shape[1], two.shape[1])
    both = (one[:, :width] >= 0) & (two[:, :width] >= 0)
    assert (one[:, :width] == two[:, :width])[both].all()
    assert both[:, 1].sum() > 100


def test_simulated_recorded_rows():
    """Rows of a recorded block as position-dependent laws; a tree deeper than the rows is refused."""
    block = next(iter(spec.logits.sample()))
    rows = rows_as_laws(block.p[:4], block.q)
    walks = simulate_chain(rows, 3, 300, seed=5)
    rates = [float(ersd.acceptance(block.p[i], block.q[i])) for i in range(3)]
    expected = 1 + math.fsum(math.prod(rates[: d + 1]) for d in range(3))
    assert expected in walks.mean_length(1e-9)
    beta = [1 - float(spec.pmf.total_variation(block.p[i], block.q[i])) for i in range(3)]
    standard = 1 + math.fsum(math.prod(beta[: d + 1]) for d in range(3))
    assert standard in simulate_standard(rows, 3, 300, seed=5).mean_length(1e-9)
    with pytest.raises(spec.UsageError, match="do not reach position 4"):
        simulate_chain(rows, 30, 50, seed=5)
