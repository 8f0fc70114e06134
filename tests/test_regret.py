"""The exact i.i.d. law of a regret budget (A9), the law over (sequence, spend), the knapsack (A10), the simulators."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectheory import Block, CostError, DataError, UsageError, exact
from spectheory.exact import regret
from spectheory.exact.offline import offline_optimum
from spectheory.models import Tabular, random_tabular
from spectheory.models.positions import Positions, recorded_positions
from spectheory.montecarlo import simulate_iid, simulate_requests, simulate_sequences
from spectheory.testing import assert_law, regret_blocks, regret_budgets, regret_positions
from spectheory.theory import asd, asd_request
from spectheory.verifiers import RegretBudget
from spectheory.verifiers.regret_budget import SLACK

INF = math.inf
F = Fraction
RULE = RegretBudget(4, F(1, 2), 2, "suffix")
GOLDEN = Positions(F(3, 5), {F(1, 2): F(1, 2), 1: F(3, 10), 3: F(1, 5)}, 4)


def brute_block(rule, positions, remaining=None):
    """The joint law of (accepted, charge) by listing every block."""
    remaining = rule.budget if remaining is None else remaining
    cells = [(None, positions.match), *((r, (1 - positions.match) * m) for r, m in positions.regrets.items())]
    out = {}
    for block in itertools.product(cells, repeat=positions.block_size):
        matches = [r is None for r, _ in block]
        regrets = [0 if r is None else r for r, _ in block]
        accepted, taken = rule.scan(matches, regrets, remaining)
        key = accepted, sum(F(regrets[i]) for i in taken)
        out[key] = out.get(key, 0) + math.prod(m for _, m in block)
    return {k: v for k, v in out.items() if v}


def brute_spend(rule, positions, blocks):
    """The law of the spend, and P(no budget rejection so far), by listing every request."""
    law, clean = {F(0): F(1)}, {F(0): F(1)}
    for _ in range(blocks):
        new, newer = {}, {}
        for spent, mass in law.items():
            for (_, charge), weight in brute_block(rule, positions, max(rule.budget - spent, 0)).items():
                new[spent + charge] = new.get(spent + charge, 0) + mass * weight
        for spent, mass in clean.items():
            free = brute_block(replace(rule, budget=INF), positions)
            for (_, charge), weight in free.items():
                if spent + charge <= rule.budget:
                    newer[spent + charge] = newer.get(spent + charge, 0) + mass * weight
        law, clean = new, newer
    return law, sum(clean.values())


def floats(law):
    return {k if isinstance(k, tuple) else float(k): float(v) for k, v in law.items()}


def test_golden_values():
    """theory/asd.md, A9."""
    assert regret.block_moments(RULE, GOLDEN) == (F(2007, 3125), F(2317, 3125), 2)
    law = regret.block_law(RULE, GOLDEN)
    assert float(sum(n * p for (n, _), p in law.items())) == pytest.approx(3.072192, abs=1e-12)
    strict = regret.block_law(replace(RULE, cap=0), GOLDEN)
    assert float(sum(n * p for (n, _), p in strict.items())) == pytest.approx(1.3056, abs=1e-12)
    once = floats(regret.spend_law(RULE, GOLDEN, 1))
    assert once == pytest.approx({0: 0.3296, 0.5: 0.2512, 1: 0.256, 1.5: 0.13152, 2: 0.03168}, abs=1e-12)
    assert regret.expected_blocks(RULE, GOLDEN).upper == pytest.approx(7.516179669, abs=5e-10)
    assert float(asd_request.exhaustion_lower(RULE, F(2007, 3125))) == pytest.approx(6.228201, abs=5e-7)
    upper = asd_request.exhaustion_upper(RULE, *regret.block_moments(RULE, GOLDEN))
    assert float(upper) == pytest.approx(8.025753, abs=5e-7)
    for blocks, value in ((5, 2.965749759), (20, 3.999696903)):
        assert regret.expected_spend(RULE, GOLDEN, blocks).upper == pytest.approx(value, abs=5e-10)


def test_floats_agree_with_fractions():
    rule, positions = RegretBudget(4.0, 0.5, 2), Positions(0.6, {0.5: 0.5, 1.0: 0.3, 3.0: 0.2}, 4)
    exact_law, law = regret.block_law(RULE, GOLDEN), regret.block_law(rule, positions)
    assert {(n, float(c)): float(p) for (n, c), p in exact_law.items()} == pytest.approx(law, abs=1e-15)


def test_degenerate_positions():
    always = Positions(1, {}, 3)
    assert regret.block_law(RULE, always) == {(3, 0): 1}
    assert regret.expected_blocks(RULE, always).upper == INF
    never = Positions(0, {INF: 1}, 3)
    assert regret.block_law(RULE, never) == {(0, 0): 1}
    assert regret.expected_exhaustion(RULE, never).upper == 0
    ties = Positions(0, {0: 1}, 2)
    assert regret.spend_law(RULE, ties, 3) == {0: 1}
    assert regret.expected_blocks(replace(RULE, budget=INF), GOLDEN).upper == INF
    assert regret.expected_exhaustion(replace(RULE, budget=INF), GOLDEN).upper == INF


@settings(max_examples=80, deadline=None)
@given(regret_budgets(), regret_positions(max_block=3))
def test_the_programme_is_the_enumeration(rule, positions):
    """DP against brute force: exact on Fractions."""
    assert regret.block_law(rule, positions) == brute_block(rule, positions)


@settings(max_examples=40, deadline=None)
@given(regret_budgets(), regret_positions(max_block=3))
def test_the_programme_in_floats_to_1e_12(rule, positions):
    blurred = Positions(
        float(positions.match), {r: float(m) for r, m in positions.regrets.items()}, positions.block_size
    )
    brute = brute_block(rule, positions)
    law = regret.block_law(rule, blurred)
    keys = {(n, float(c)) for n, c in brute} | set(law)
    expected = {(n, float(c)): float(p) for (n, c), p in brute.items()}
    assert max(abs(law.get(k, 0.0) - expected.get(k, 0.0)) for k in keys) <= 1e-12


@settings(max_examples=25, deadline=None)
@given(regret_budgets(positive=True), regret_positions(max_block=2))
def test_spend_after_blocks_is_the_enumeration(rule, positions):
    law, survival = brute_spend(rule, positions, 3)
    assert {F(k): v for k, v in regret.spend_law(rule, positions, 3).items()} == law
    if rule.variant == "suffix":
        assert regret.request(rule, positions, 3).survival[3] == survival


@settings(max_examples=30, deadline=None)
@given(regret_budgets(positive=True), regret_positions(max_block=3), st.sampled_from([F(1, 3), F(1, 2), F(3, 4), F(1)]))
def test_roundings_bracket_the_exact_values(rule, positions, step):
    """Certified direction: N from both sides, the accepted length of one block, the mean spend."""
    assert regret.expected_blocks(rule, positions).upper in _widened(regret.expected_blocks(rule, positions, step))
    assert regret.expected_spend(rule, positions, 4).upper in _widened(regret.expected_spend(rule, positions, 4, step))
    up, exact_mean, down = (
        sum(n * p for (n, _), p in regret.block_law(rule, positions, **options).items())
        for options in ({"step": step}, {}, {"step": step, "direction": "down"})
    )
    assert up <= exact_mean <= down


def _widened(x):
    """Room for float rounding only."""
    return replace(x, lower=x.lower - 1e-9, upper=x.upper + 1e-9 if x.upper < INF else INF)


def test_the_unconstrained_mean_agrees_with_the_chain():
    free = replace(RULE, budget=INF)
    charges = {}
    for (_, c), p in regret.block_law(free, GOLDEN).items():
        charges[c] = charges.get(c, 0) + p
    mean, square, largest = regret.block_moments(RULE, GOLDEN)
    assert sum(c * p for c, p in charges.items()) == mean
    assert sum(c * c * p for c, p in charges.items()) == square
    assert max(charges) == largest


def test_permanent_exhaustion_takes_far_longer_than_the_bound():
    rule, positions = RegretBudget(1.5, INF, 1), Positions(0.0, {1.0: 0.99, 0.01: 0.01}, 1)
    bound = asd_request.exhaustion_upper(rule, *regret.block_moments(rule, positions))
    assert float(bound) == pytest.approx(2.525, abs=1e-3)
    assert regret.expected_blocks(rule, positions).upper < bound
    assert 4900 < regret.expected_exhaustion(rule, positions).upper < 5100


def test_without_charges_there_is_no_bound():
    with pytest.raises(UsageError, match="never runs out"):
        asd_request.exhaustion_upper(RULE, 0, 0, 0)
    assert asd.SLACK == SLACK


def test_tokens_per_call_run_down_to_strict():
    calls = regret.tokens_per_call(RULE, GOLDEN, 200)
    assert float(calls[0]) == pytest.approx(4.072192, abs=1e-12)
    assert float(calls[-1]) == pytest.approx(2.3056, abs=1e-6)


def test_bad_positions_and_lattices():
    with pytest.raises(DataError, match="match probability"):
        Positions(1.5, {1: 1}, 2)
    with pytest.raises(DataError, match="sums to"):
        Positions(0.5, {1: 0.5, 2: 0.4}, 2)
    with pytest.raises(DataError, match="regret -1"):
        Positions(0.5, {-1: 1}, 2)
    with pytest.raises(UsageError, match="block_size"):
        Positions(0.5, {1: 1}, 0)
    with pytest.raises(DataError, match="negative or NaN"):
        recorded_positions([False, True], [math.nan, 0.0], 2)
    with pytest.raises(UsageError, match="step"):
        regret.block_law(RULE, GOLDEN, step=0)
    fine = Positions(0.5, {0.123456789012345: 0.5, 1.0: 0.5}, 4)
    with pytest.raises(CostError, match="step"):
        regret.block_law(RegretBudget(4.0, 0.5, 2), fine)
    with pytest.raises(CostError, match="LATTICE_CAP"):
        regret.expected_blocks(RegretBudget(1e6, 0.5, 2), GOLDEN)


# The law over (sequence, spend), and the simulators.


def brute_sequence(rule, model, length, block_size, drafts):
    """The law of (first T tokens, spend) by following every draft, with the rule on full blocks."""
    out, work = {}, [((), rule.start(), 1.0)]
    while work:
        tokens, state, mass = work.pop()
        if len(tokens) >= length:
            key = tokens[:length], float(state.spent)
            out[key] = out.get(key, 0.0) + mass
            continue
        for guess in itertools.product(range(model.vocab_size), repeat=block_size):
            rows = [int(model.contexts(np.array([[*tokens, *guess[:i]]]))[0]) for i in range(block_size + 1)]
            q = model.draft[rows[:-1]]
            if drafts == "argmax":
                q = np.eye(model.vocab_size)[q.argmax(axis=1)]
            weight = float(np.prod(q[np.arange(block_size), list(guess)]))
            if weight > 0:
                verdict = rule.verify(Block(np.array(guess), model.target[rows]), state)
                work.append(((*tokens, *(int(x) for x in verdict.tokens)), verdict.state, mass * weight))
    return out


MODEL = Tabular(
    np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.4, 0.35, 0.25]]),
    np.array([[0.3, 0.6, 0.1], [0.5, 0.2, 0.3], [0.2, 0.6, 0.2]]),
)


@pytest.mark.parametrize("drafts", ["argmax", "sampled"])
@pytest.mark.parametrize("variant", ["suffix", "normalized"])
def test_law_over_sequence_and_spend_is_the_enumeration(drafts, variant):
    rule = RegretBudget(1.0, 0.6, 1, variant)
    law = regret.sequence_spend_law(rule, MODEL, length=4, block_size=2, drafts=drafts)
    brute = brute_sequence(rule, MODEL, 4, 2, drafts)
    assert set(law) == set(brute)
    assert max(abs(law[k] - brute[k]) for k in law) <= 1e-12
    assert len({spent for _, spent in law}) > 1 or drafts == "argmax"


def test_the_marginal_is_the_sequence_law():
    rule = RegretBudget(1.0, 0.6, 1)
    law = regret.sequence_spend_law(rule, MODEL, length=3, block_size=2, drafts="sampled")
    marginal = np.zeros((3, 3, 3))
    for (tokens, _), mass in law.items():
        marginal[tokens] += mass
    assert marginal == pytest.approx(exact.sequence_law(rule, MODEL, length=3, block_size=2), abs=1e-12)


def test_bad_drafts_are_named():
    with pytest.raises(UsageError, match="argmax or sampled"):
        regret.sequence_spend_law(RULE, MODEL, length=2, block_size=1, drafts="soft")
    with pytest.raises(UsageError, match="argmax or sampled"):
        simulate_sequences(RULE, MODEL, requests=1, length=1, block_size=1, drafts="soft")


def test_simulated_requests_follow_the_exact_law():
    """Spend after 1 and 6 blocks and accepted lengths of the first: each assert false-alarms at 1e-9."""
    n = 40_000
    sample = simulate_iid(RULE, GOLDEN, n, 6, seed=11)
    for blocks in (1, 6):
        law = floats(regret.spend_law(RULE, GOLDEN, blocks))
        values = sorted(law)
        index = np.searchsorted(values, sample.spent[:, blocks - 1])
        assert np.array(values)[index] == pytest.approx(sample.spent[:, blocks - 1])
        assert_law(index, [law[v] for v in values], false_alarm=1e-9)
    lengths = np.zeros(5)
    for (accepted, _), mass in regret.block_law(RULE, GOLDEN).items():
        lengths[accepted] += float(mass)
    assert_law(sample.accepted[:, 0], lengths, false_alarm=1e-9)
    unrefused = 1 - np.cumsum(sample.refused, axis=1).astype(bool).mean(axis=0)
    survival = regret.request(RULE, GOLDEN, 6).survival[1:].astype(float)
    # Hoeffding with 6 comparisons: false alarm 1e-9 in all.
    assert np.abs(unrefused - survival).max() <= math.sqrt(math.log(2 * 6 / 1e-9) / (2 * n))


@pytest.mark.parametrize("drafts", ["argmax", "sampled"])
def test_simulated_sequences_follow_the_exact_law(drafts):
    """False alarm 1e-9 each."""
    rule, n = RegretBudget(1.0, 0.6, 1), 20_000
    law = regret.sequence_spend_law(rule, MODEL, length=3, block_size=2, drafts=drafts)
    sample = simulate_sequences(rule, MODEL, requests=n, length=3, block_size=2, drafts=drafts, seed=5)
    keys = {(tokens, round(spent, 9)): i for i, (tokens, spent) in enumerate(law)}
    seen = [keys[tuple(t), round(float(s), 9)] for t, s in zip(sample.tokens.tolist(), sample.spent)]
    assert_law(seen, list(law.values()), false_alarm=1e-9)


def test_simulated_sequences_are_the_rules_own():
    """Argmax drafts leave nothing to chance: every request of the simulator is the exact law's only point."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        model = random_tabular(rng, 4, order=1)
        rule = RegretBudget(1.5, 0.5, 2, "normalized")
        ((tokens, spent),) = regret.sequence_spend_law(rule, model, length=6, block_size=3)
        sample = simulate_sequences(rule, model, requests=3, length=6, block_size=3)
        assert sample.tokens.tolist() == [list(tokens)] * 3
        assert sample.spent == pytest.approx([spent] * 3, abs=1e-12)


def test_bad_simulated_regrets_are_named():
    regrets = np.zeros((2, 3, 4))
    regrets[1, 2, 3] = math.nan
    with pytest.raises(DataError, match="request 1, block 2, position 3"):
        simulate_requests(RULE, regrets == 0, regrets)
    with pytest.raises(DataError, match="must both be"):
        simulate_requests(RULE, np.zeros((2, 3), dtype=bool), np.zeros((2, 3)))


# A10 and A6: hindsight, and the counterexamples found by exhaustion.


def test_offline_optimum_golden():
    """theory/asd.md, A10: 4 of 7."""
    rule = RegretBudget(1, 1, 1)
    blocks = [((True, True, True, False), (0, 0, 0, 1)), ((False, True, True, True), (1, 0, 0, 0))]
    state, accepted = rule.budget, 0
    for matches, regrets in blocks:
        n, taken = rule.scan(matches, regrets, state)
        state, accepted = state - sum(regrets[i] for i in taken), accepted + n
    best = offline_optimum(rule, blocks)
    assert (accepted, best.accepted, best.lengths.tolist(), best.spent) == (4, 7, [3, 4], 1.0)


@settings(max_examples=60, deadline=None)
@given(regret_budgets(), st.lists(regret_blocks(4), min_size=1, max_size=3))
def test_the_knapsack_is_the_enumeration_and_dominates_the_rule(rule, blocks):
    best = offline_optimum(rule, blocks)
    assert best.accepted == asd_request.best_plan(rule, blocks)
    left, accepted = rule.budget, 0
    for matches, regrets in blocks:
        n, taken = rule.scan(matches, regrets, left)
        left, accepted = max(left - sum(regrets[i] for i in taken), 0), accepted + n
    assert accepted <= best.accepted
    assert best.spent <= float(asd.spend_bound(rule, len(blocks)))


def hurts(control, by, length, size):
    """All (rule, trace) of `length` positions on a small grid where raising `control` costs calls."""
    grid = (None, 1, 3) if control != "cap" else (None, 1)
    for cells in itertools.product(grid, repeat=length):
        trace = tuple(c is None for c in cells), tuple(c or 0 for c in cells), size
        for budget, gate, cap in itertools.product((1, 2, 3), (F(1, 2), 1, F(3, 2)), (1, 2)):
            rule = RegretBudget(budget, gate, cap)
            raised = replace(rule, **{control: getattr(rule, control) + by})
            if asd_request.calls(raised, *trace)[0] > asd_request.calls(rule, *trace)[0]:
                yield rule, cells


@pytest.mark.parametrize(
    ("control", "by", "length", "found"),
    [
        ("budget", 1, 4, (RegretBudget(2, F(3, 2), 2), (3, 1, 1, None))),
        ("gate", F(1, 2), 4, (RegretBudget(3, 1, 2), (3, 1, 1, None))),
        ("cap", 1, 5, (RegretBudget(2, 1, 1), (1, 1, None, 1, None))),
    ],
)
def test_a6_counterexamples_are_found_and_shortest(control, by, length, found):
    """Exhaustion at K = 2: nothing below `length`, and the registered example at it."""
    for shorter in range(1, length):
        assert next(hurts(control, by, shorter, 2), None) is None
    assert found in list(hurts(control, by, length, 2))
