"""Exact race laws: degenerate pairs, golden values, special cases, the large-vocabulary engine, the verifier."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectheory as spec
from spectheory import exact, pmf
from spectheory.exact.race_large import rank_measure
from spectheory.montecarlo import simulate_ranks
from spectheory.protocols import supports
from spectheory.testing import assert_law, pairs, race_pairs, rational_pairs
from spectheory.theory import ersd
from spectheory.verifiers.exponential_race import ExponentialRace, draft_order, draft_tree, race_winner


def law(*weights):
    return np.array([F(w) / sum(map(F, weights)) for w in weights], dtype=object)


G1 = law("7/10", "3/10"), law("4/10", "6/10")
G4 = law(4, 3, 2, 1), law(1, 1, 1, 1)
G6 = law(*(F(1, i) for i in range(1, 9))), law(*(F(1, i * i) for i in range(1, 9)))
G8 = law(9, 1), law(9999, 1)
# TV, P(R = 1), H[R], E ln R, E[R], H[K]; nats
GOLDEN = {
    "G1": (G1, 0.3, 0.7, 0.610864302054894, 0.207944154167984, 1.3, 0.969391057022641),
    "G4": (G4, 0.2, 2181 / 2860, 0.684453385470325, 0.185568220073438, 1.29079254079254, 0.767716815287549),
    "G6": (
        G6,
        0.286760968381282,
        0.676475237692367,
        0.883371134043249,
        0.268984170002887,
        1.44134983988792,
        1.20711111756185,
    ),
    "G8": (G8, 0.0999, 0.9001, 0.32486319536169, 0.0692454033379385, 1.0999, 1.11479798107368),
}


def zipf(size, seed=0, spread=0.8):
    rng = np.random.default_rng(seed)
    z = -1.1 * np.log(np.arange(1, size + 1)) + rng.normal(0, 0.3, size)
    w = z + rng.normal(0, spread, size)
    return pmf.softmax(z), pmf.softmax(w)


def test_one_token():
    one = np.array([1.0])
    assert exact.rank_law(one, one).tolist() == [1]
    assert exact.rank_entropy(one, one).upper == 0
    assert ersd.acceptance(one, one) == 1


def test_equal_laws_have_rank_one():
    p = np.array([0.5, 0.3, 0.2])
    assert exact.rank_law(p, p) == pytest.approx([1, 0, 0], abs=1e-12)
    assert exact.rank_entropy(p, p).kind == "exact"
    assert exact.index_entropy(law(1, 2), law(1, 2)).upper == pytest.approx(0, abs=1e-12)


def test_tokens_without_draft_mass_come_last_in_index_order():
    assert exact.rank_law(law(0, 1), law(1, 0)).tolist() == [0, 1]
    assert exact.rank_law(law(0, 1, 1), law(1, 0, 0)).tolist() == [0, F(1, 2), F(1, 2)]
    assert exact.rank_law(np.array([0.0, 0.5, 0.5]), np.array([1.0, 0, 0])) == pytest.approx([0, 0.5, 0.5])
    assert exact.index_law(law(0, 1), law(1, 0), 3).tolist() == [0, 0, 0]
    assert exact.index_mean(law(0, 1), law(1, 0)) == math.inf
    assert exact.index_variance(law(0, 1), law(1, 0)) == math.inf
    assert ersd.mean_rank(law(0, 1, 1), law(1, 0, 0)) == F(5, 2)
    assert ersd.second_rank(law(0, 1, 1), law(1, 0, 0)) == F(1, 2)
    assert ersd.log_rank_lambda(law(0, 1), law(1, 0)) == math.inf


@pytest.mark.parametrize("tiny", [1e-280, 1e-300, 1e-320])
def test_masses_near_the_smallest_float_do_not_overflow(tiny):
    p, q = np.array([0.5, 0.5]), np.array([1.0, tiny])
    assert exact.rank_law(p, q) == pytest.approx([0.5, 0.5])
    ours, error = rank_measure(p, np.where(q < 1e-290, 0, q), 1e-6)
    assert abs(ours - 0.5).sum() <= error + 1e-15
    assert ersd.acceptance(p, q) == pytest.approx(0.5)
    assert math.log(2) in exact.rank_entropy(p, q)
    assert exact.index_law(p, q, 2) == pytest.approx([0.5, 0])


def test_too_many_tokens_ahead_are_refused_before_they_cost():
    p = np.ones(20_000) / 20_000
    q = np.arange(1, 20_001.0)
    with pytest.raises(spec.CostError, match="multiplications"):
        exact.rank_entropy(p, q / q.sum(), 1e-5)


def test_both_zero_tokens_are_harmless():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.0])
    assert exact.rank_law(p, q) == pytest.approx([0.75, 0.25, 0], abs=1e-12)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_values(name):
    (p, q), tv, first, entropy, log_mean, mean, index_entropy = GOLDEN[name]
    ranks = exact.rank_law(p, q)
    assert sum(ranks) == 1
    assert float(pmf.total_variation(p, q)) == pytest.approx(tv, abs=1e-10)
    assert float(ersd.acceptance(p, q)) == pytest.approx(first, abs=1e-10)
    assert ranks[0] == ersd.acceptance(p, q)
    assert float(pmf.entropy(ranks)) == pytest.approx(entropy, abs=1e-10)
    assert exact.log_mean(ranks) == pytest.approx(log_mean, abs=1e-10)
    assert float(exact.mean(ranks)) == pytest.approx(mean, abs=1e-10)
    assert exact.mean(ranks) == ersd.mean_rank(p, q)
    assert exact.index_entropy(p, q).estimate == pytest.approx(index_entropy, abs=1e-10)
    floats = exact.rank_law(p.astype(float), q.astype(float))
    assert floats == pytest.approx(ranks.astype(float), abs=1e-12)


def test_golden_rank_laws():
    assert exact.rank_law(*G4).tolist() == [F(2181, 2860), F(5689, 30030), F(213, 5005), F(5, 924)]
    expected = [
        0.676475237692367,
        0.22956780321194,
        0.0734418174330443,
        0.0174565075265477,
        0.00277807558086281,
        0.000267020230639606,
        1.32925185912882e-05,
        2.45806007405854e-07,
    ]
    assert exact.rank_law(*G6).astype(float) == pytest.approx(expected, abs=1e-14)


def orders_reference(p, q):
    """P(R = r) for V <= 4 by integrating over the order of all arrival times: slow, rational, from the definition.

    Y = i at time t and every j ahead or not: inclusion and exclusion over the set B of tokens that are NOT ahead,
    P(no token of B ahead | t) = exp(-t sum_B a_ij), integrated against e^-t.
    """
    size = len(p)
    out = [F(0)] * size
    for i in range(size):
        if p[i] == 0:
            continue
        others = [j for j in range(size) if j != i]
        if q[i] == 0:
            out[sum(q[j] > 0 or (q[j] == 0 and j < i) for j in others)] += p[i]
            continue
        a = {j: max(q[j] * p[i] / q[i] - p[j], F(0)) for j in others}
        for ahead in itertools.chain.from_iterable(itertools.combinations(others, n) for n in range(size)):
            chance = sum(
                F((-1) ** len(s)) / (1 + sum(a[j] for j in others if j not in ahead) + sum(a[j] for j in s))
                for s in itertools.chain.from_iterable(itertools.combinations(ahead, n) for n in range(len(ahead) + 1))
            )
            out[len(ahead)] += p[i] * chance
    return out


@given(rational_pairs(1, 4))
def test_rank_law_by_inclusion_and_exclusion(pair):
    assert exact.rank_law(*pair).tolist() == orders_reference(*pair)


@given(rational_pairs(1, 5))
def test_float_law_is_the_rational_law(pair):
    p, q = pair
    floats = exact.rank_law(p.astype(float), q.astype(float))
    assert floats == pytest.approx(exact.rank_law(p, q).astype(float), abs=1e-11)


@given(rational_pairs(1, 5))
def test_joint_law_has_the_target_as_margin(pair):
    joint = exact.rank_joint(*pair)
    assert joint.sum(axis=1).tolist() == pair[0].tolist()
    assert joint.sum(axis=0).tolist() == exact.rank_law(*pair).tolist()


@given(rational_pairs(1, 5), st.integers(1, 4))
def test_bounds_and_order_of_rank_and_index(pair, m):
    ranks, tv = exact.rank_law(*pair), pmf.total_variation(*pair)
    assert (1 - tv) / (1 + tv) <= ranks[0] <= 1 - tv
    index = exact.index_law(*pair, m)
    assert index[0] == ranks[0]
    assert sum(index) <= sum(ranks[:m])
    assert all(a >= b for a, b in itertools.pairwise(index))


@settings(max_examples=25)
@given(race_pairs(1, 4))
def test_moments_of_the_index_are_those_of_its_law(pair):
    p, q = (x.astype(float) for x in pair)
    k = np.arange(1, 2001)
    pmf_k = exact.index_law(p, q, 2000)
    assert float(exact.index_mean(*pair)) == pytest.approx(pmf_k @ k, rel=1e-9)
    assert float(exact.index_variance(*pair)) == pytest.approx(pmf_k @ k**2 - (pmf_k @ k) ** 2, rel=1e-7, abs=1e-9)
    assert exact.index_log_mean(*pair).estimate == pytest.approx(pmf_k @ np.log(k), rel=1e-9, abs=1e-12)
    assert exact.index_entropy(*pair).estimate == pytest.approx(spec.pmf.entropy(pmf_k), rel=1e-9, abs=1e-9)
    log_rank, chain = exact.log_mean(exact.rank_law(*pair)), ersd.log_rank_lambda(*pair)
    assert log_rank - 1e-9 <= exact.index_log_mean(*pair).upper <= chain + 1e-9
    assert chain <= ersd.log_rank_bound(*pair) + 1e-9


@given(race_pairs(1, 5))
def test_draft_laws_are_successive_sampling(pair):
    _, q = pair
    size = len(q)
    expected = np.full((size, size), F(0), dtype=object)
    for order in itertools.permutations(range(size)):
        chance, left = F(1), F(1)
        for i in order:
            chance, left = chance * q[i] / left, left - q[i]
        for r, i in enumerate(order):
            expected[r, i] += chance
    assert (exact.draft_laws(q) == expected).all()


@given(pairs(2, 6), st.integers(0, 10**6))
def test_monte_carlo_races_follow_the_exact_law(pair, seed):
    """Two asserts at a false-alarm rate of 1e-9; 100 examples."""
    p, q = pair
    ranks, winners = simulate_ranks(p, q, 2000, seed)
    expected = exact.rank_law(p, q)
    assert_law(ranks - 1, np.where(expected < 1e-11, 0, expected))
    assert_law(winners, p)


def direct_law(p, q, nodes=160):
    """The definition: Gauss-Legendre in t = x / (1 - x), the Poisson-binomial recursion for every winner and node."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = (x + 1) / 2, w / 2
    t = x / (1 - x)
    weight = w * np.exp(-t) / (1 - x) ** 2
    out = np.zeros(len(p))
    for i in np.flatnonzero(p):
        a = np.maximum(q * p[i] / q[i] - p, 0)
        ahead = -np.expm1(-np.outer(t, a[a > 0]))
        mean = float((weight[:, None] * ahead).sum() / weight.sum())
        width = min(len(p), int(60 + 40 * mean))
        law = np.zeros((nodes, width))
        law[:, 0] = weight
        for column in ahead.T:
            moved = law * column[:, None]
            law -= moved
            law[:, 1:] += moved[:, :-1]
        out[:width] += p[i] * law.sum(axis=0)
    return out


def test_engine_for_large_vocabularies_agrees_with_the_direct_method():
    p, q = zipf(60)
    expected = direct_law(p, q)
    assert exact.rank_law(p, q) == pytest.approx(expected, abs=1e-10)
    for budget in (1e-12, 1e-7, 1e-4):
        ours, error = rank_measure(p, q, budget, every_token=budget < 1e-10)
        assert error <= budget
        assert abs(ours - expected).sum() <= error + 1e-10


@pytest.mark.full
def test_entropy_at_500_tokens_against_the_direct_method():
    p, q = zipf(500, seed=1)
    expected = direct_law(p, q)
    entropy = float(pmf.entropy(np.maximum(expected, 0)))
    for tol in (1e-3, 1e-5):
        interval = exact.rank_entropy(p, q, tol)
        assert interval.width <= 2 * tol
        assert interval.lower - 1e-9 <= entropy <= interval.upper + 1e-9
    assert abs(exact.rank_law(p, q) - expected).sum() < 1e-8


@given(pairs(1, 6), st.sampled_from([1e-2, 1e-4, 1e-6]))
def test_engine_certificate_holds_on_odd_pairs(pair, budget):
    p, q = pair
    ours, error = rank_measure(p, q, budget)
    assert error <= budget
    assert abs(ours - exact.rank_law(p, q)).sum() <= error + 1e-11


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_engine_with_huge_ratios(scale):
    """A draft that all but misses a likely token: many tokens ahead at once."""
    p = np.array([0.3, *np.full(40, 0.7 / 40)])
    q = np.array([0.3 / scale, *np.full(40, (1 - 0.3 / scale) / 40)])
    expected = exact.rank_law(p, q)
    ours, error = rank_measure(p, q, 1e-6)
    assert abs(ours - expected).sum() <= error + 1e-11
    assert expected[40] > 0.25


def test_rank_head_states_its_error():
    p, q = zipf(300)
    head, error = exact.rank_head(p, q, 8, tol=1e-5)
    assert head.shape == (8,)
    assert error <= 1e-5
    assert abs(head - exact.rank_law(p, q)[:8]).sum() <= error + 1e-11
    padded, error = exact.rank_head(np.array([1.0]), np.array([1.0]), 3)
    assert padded == pytest.approx([1, 0, 0], abs=error + 1e-15)


def test_entropy_of_a_large_row_is_certified():
    p, q = zipf(49_152)
    interval, finer = (exact.rank_entropy(p, q, tol) for tol in (1e-2, 1e-3))
    assert interval.width <= 2e-2
    assert finer.width <= 2e-3
    assert interval.lower <= finer.estimate <= interval.upper


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([0.5, 0.6], [0.5, 0.5], "p row 0 sums to 1.1"),
        ([0.5, 0.5], [0.5, np.nan], "q row 0, token 1 is NaN"),
        ([0.5, 0.5], [1.0], "2 tokens a row and q has 1"),
        ([-0.5, 1.5], [0.5, 0.5], "negative mass"),
    ],
)
def test_bad_laws_are_named(p, q, message):
    for call in (exact.rank_law, exact.rank_entropy, exact.rank_joint, ersd.acceptance):
        with pytest.raises(spec.DataError, match=message):
            call(np.array(p), np.array(q))


def test_caps_and_floors():
    big = np.ones(2001) / 2001
    with pytest.raises(spec.CostError, match="rank_head"):
        exact.rank_law(big, big)
    many = law(*range(1, 17))
    with pytest.raises(spec.CostError, match="2\\^15 subsets"):
        exact.rank_law(law(*range(16, 0, -1)), many)
    with pytest.raises(spec.PrecisionError, match="floor"):
        exact.rank_head(*zipf(100), 3, tol=1e-15)
    with pytest.raises(spec.CostError, match="infinite"):
        exact.index_entropy(law(0, 1), law(1, 0))
    with pytest.raises(spec.UsageError, match="one pair of laws"):
        exact.rank_law(np.ones((2, 2)) / 2, np.ones((2, 2)) / 2)
    with pytest.raises(spec.UsageError):
        exact.rank_head(*zipf(10), 0)
    with pytest.raises(spec.UsageError, match="k must be"):
        ExponentialRace(k=-1)


# The verifier.


def test_it_offers_what_shared_randomness_needs():
    assert {"acceptance", "residual", "correction", "joint", "outcomes", "verify"} <= supports(ExponentialRace())


@given(rational_pairs(1, 5))
def test_joint_law_has_both_margins(pair):
    p, q = pair
    joint = ExponentialRace().joint(p, q)
    assert joint.sum(axis=0).tolist() == p.tolist()
    assert joint.sum(axis=1).tolist() == q.tolist()
    assert np.trace(joint) == exact.rank_law(p, q)[0]
    assert exact.step_deviation(ExponentialRace(), p, q) == 0


def test_golden_acceptance_on_the_canonical_pair(c4):
    assert exact.acceptance_rate(ExponentialRace(), *c4) == pytest.approx(0.492853, abs=5e-7)


def test_joint_law_refuses_large_vocabularies():
    p, q = zipf(100)
    with pytest.raises(spec.CostError, match="V = 64"):
        ExponentialRace().joint(p, q)
    assert exact.step_deviation(ExponentialRace(), p, q) == pytest.approx(0, abs=1e-15)


def test_same_noise_gives_the_same_tokens_whatever_the_drafter():
    """Drafter invariance: two drafters, one seed; both commit prefixes of one sequence, which depends on p alone."""
    rng = np.random.default_rng(5)
    rule, longest = ExponentialRace(), 0
    for _ in range(200):
        p = rng.dirichlet(np.ones(6), size=5)
        noise = rng.standard_exponential((5, 6))
        target = race_winner(p, noise)
        for _ in range(3):
            q = rng.dirichlet(np.ones(6), size=4)
            block = spec.Block(race_winner(q, noise[:4]), p=p, q=q)
            verdict = rule.race(block, noise)
            assert verdict.tokens.tolist() == target[: verdict.accepted + 1].tolist()
            longest = max(longest, verdict.accepted)
    assert longest >= 3


def test_chain_forms_agree_in_law(c4):
    """`verify`, which knows the drafts only, and `race`, which has the noise, give one law. False alarm 1e-9 each."""
    p, q = c4
    rule, rng, n = ExponentialRace(), np.random.default_rng(7), 6000
    block_p, block_q = np.array([p, p]), q[None]
    first, noise = np.empty(n, dtype=int), rng.standard_exponential((n, 2, 4))
    other = np.empty(n, dtype=int)
    drafts = race_winner(q, noise[:, 0])
    for s in range(n):
        block = spec.Block(drafts[s : s + 1], p=block_p, q=block_q)
        first[s] = rule.race(block, noise[s]).tokens[0]
        other[s] = first[s] if s >= 3000 else rule.verify(block, None, rng).tokens[0]
    assert_law(first, p)
    assert_law(other[:3000], p)


def test_list_form_emits_the_target_law_and_accepts_by_rank():
    """False-alarm rate 1e-9 for each of two asserts."""
    p, q = G6[0].astype(float), G6[1].astype(float)
    rng, rule, n, m = np.random.default_rng(8), ExponentialRace(), 8000, 3
    noise = rng.standard_exponential((n, 8))
    orders = draft_order(q, noise)
    verdicts = [rule.race_list(p, orders[s, :m], noise[s]) for s in range(n)]
    assert_law([int(v.tokens[0]) for v in verdicts], p)
    accepted = float(exact.rank_law(p, q)[:m].sum())
    assert_law([v.accepted for v in verdicts], [1 - accepted, accepted])


def test_tree_form_emits_the_target_process():
    """A context-dependent model, a tree of 6 nodes: the first two tokens follow the target. False-alarm rate 1e-9."""
    P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
    Q = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]])
    rng, rule, n = np.random.default_rng(9), ExponentialRace(), 6000
    shape = ersd.optimal_tree([0.7, 0.2, 0.1], 6)
    noise = rng.standard_exponential((n, 8, 3))

    def last(prefix):
        return int(prefix[-1]) if len(prefix) else 0

    pair = np.empty(n, dtype=int)
    lengths = np.empty(n)
    for s in range(n):
        tokens = draft_tree(shape.parent, shape.rank, lambda prefix: Q[last(prefix)], noise[s])
        laws = np.array([P[0], *(P[t] for t in tokens)])
        verdict = rule.race_tree(shape.parent, tokens, laws, noise[s])
        lengths[s] = len(verdict.tokens)
        out = [
            *verdict.tokens,
            *(race_winner(P[verdict.tokens[-1]], noise[s][1:2]) if len(verdict.tokens) == 1 else []),
        ]
        pair[s] = 3 * out[0] + out[1]
    assert_law(pair, (P[0][:, None] * P).ravel())
    assert lengths.max() >= 3


def test_tree_form_checks_its_laws():
    with pytest.raises(spec.DataError, match="needs 3 target laws"):
        ExponentialRace().race_tree([-1, 0], [0, 1], np.ones((2, 2)) / 2, np.ones((3, 2)))
    with pytest.raises(spec.DataError, match="race noise"):
        ExponentialRace().race(spec.Block([0], p=np.ones((2, 2)) / 2, q=np.ones((1, 2)) / 2), -np.ones((2, 2)))


def test_shared_noise_trap_is_biased_and_caught():
    """Reusing the draft's noise for the residual: the exact bias, and a simulation that the law assert rejects (1e-9 an assert)."""
    p, q = law(1, 5, 4), law(6, 3, 1)
    trap = ersd.reused_noise_law(p, q)
    assert trap.astype(float) == pytest.approx([0.1, 0.448148148148148, 0.451851851851852], abs=1e-12)
    c4 = law(4, 2, 3, 1), law(1, 5, 1, 3)
    assert ersd.reused_noise_law(*c4).astype(float) == pytest.approx([0.409524, 0.2, 0.290476, 0.1], abs=5e-7)
    rng, n = np.random.default_rng(10), 50_000
    pf, qf = p.astype(float), q.astype(float)
    noise = rng.standard_exponential((n, 3))
    draft = race_winner(qf, noise)
    accepted = rng.random(n) < np.minimum(1, pf / qf)[draft]
    emitted = np.where(accepted, draft, race_winner(pmf.residual(pf, qf), noise))
    assert_law(emitted, trap.astype(float))
    with pytest.raises(AssertionError, match="empirical law"):
        assert_law(emitted, pf)
    fresh = np.where(accepted, draft, race_winner(pmf.residual(pf, qf), rng.standard_exponential((n, 3))))
    assert_law(fresh, pf)
