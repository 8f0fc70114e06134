"""ASD's rule: degenerate cases, ties, both variants, the broken ones, bad input."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from spectheory import Block, DataError, UsageError, logits
from spectheory.audit.recorded import read_rows, replay
from spectheory.montecarlo.requests import simulate_requests
from spectheory.testing import (
    compact_scores,
    greedy_blocks,
    regret_blocks,
    regret_budgets,
    regret_requests,
    run_regret_request,
)
from spectheory.theory import asd
from spectheory.verifiers import RegretBudget, get, names
from spectheory.verifiers.broken_budget import BROKEN_BUDGETS, BudgetResetEachBlock, GateWithoutValue
from spectheory.verifiers.regret_budget import SLACK, VARIANTS

INF = math.inf
SUFFIX, NORMALIZED = VARIANTS
ANYTHING = RegretBudget(INF, INF, INF)


def block(tokens, rows):
    return Block(np.array(tokens), logits=np.array(rows, dtype=float))


def strict(blocks_logits, tokens):
    """Strict greedy by its definition."""
    n = 0
    while n < len(tokens) and tokens[n] == int(np.argmax(blocks_logits[n])):
        n += 1
    return n, [*tokens[:n], int(np.argmax(blocks_logits[n]))]


def test_one_token_vocabulary_always_matches():
    verdict = RegretBudget(0, 0, 0).verify(block([0, 0], [[1.0], [2.0], [-3.0]]))
    assert verdict.accepted == 2
    assert verdict.tokens.tolist() == [0, 0, 0]
    assert verdict.state.spent == 0


def test_the_empty_block_emits_the_greedy_token():
    verdict = ANYTHING.verify(block([], [[0.0, 2.0, 1.0]]))
    assert (verdict.accepted, verdict.tokens.tolist()) == (0, [1])


def test_a_mismatch_is_charged_and_the_ledger_says_so():
    rule = get("asd", budget=8.0, gate=0.25, cap=2, variant="suffix")
    verdict = rule.verify(block([1, 0], [[1, 0.5, 0], [2, 1, 0], [0, 0, 1]]), rule.start(), rng=None)
    assert (verdict.accepted, verdict.tokens.tolist(), verdict.state.spent) == (2, [1, 0, 2], 0.5)
    (charge,) = verdict.state.ledger
    assert (charge.block, charge.position, charge.regret, charge.value, charge.spent) == (0, 0, 0.5, 2, 0.5)


def test_the_budget_persists_over_the_request():
    rule = RegretBudget(1.5, 1.0, 1)
    accepted, state = run_regret_request(rule, [((False,), (1.0,)), ((False,), (1.0,)), ((False,), (0.5,))])
    assert accepted == [1, 0, 1]
    assert (state.spent, state.remaining, state.blocks) == (1.5, 0.0, 3)


def test_minus_infinity_is_never_accepted_even_with_infinite_controls():
    for variant in VARIANTS:
        rule = RegretBudget(INF, INF, INF, variant)
        assert rule.verify(block([1], [[0, -INF], [0, 0]])).accepted == 0
        assert rule.verify(block([1], [[0, -1e300], [0, 0]])).accepted == 1


def test_argmax_ties_go_to_the_lowest_index():
    verdict = RegretBudget(0, 0, 0).verify(block([1], [[2, 2], [5, 5]]))
    assert (verdict.accepted, verdict.tokens.tolist()) == (0, [0])
    assert RegretBudget(0, 0, 0).verify(block([0], [[2, 2], [5, 5]])).tokens.tolist() == [0, 0]


def test_log_probabilities_serve_where_there_are_no_logits():
    p = np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])
    verdict = RegretBudget(1.0, 1.0, 1).verify(Block(np.array([1]), p=p))
    assert verdict.accepted == 1
    assert verdict.state.spent == pytest.approx(math.log(2), abs=1e-15)


@settings(max_examples=200, deadline=None)
@given(greedy_blocks(), regret_budgets())
def test_strict_at_zero_on_logits_with_exact_ties(b, rule):
    """A4, with its registered exception: normalized at g = 0 accepts zero-regret ties while budget is left."""
    expected = strict(b.logits, b.tokens.tolist())
    for zero in (replace(rule, cap=0), replace(rule, budget=0), replace(rule, gate=0)):
        verdict = zero.verify(b)
        if zero.variant == NORMALIZED and zero.gate == 0 and zero.cap > 0 and zero.budget > 0:
            top = b.logits.max(axis=1)
            regrets = top[:-1] - b.logits[np.arange(b.size), b.tokens]
            matches = [int(np.argmax(z)) == x for z, x in zip(b.logits, b.tokens)]
            assert verdict.accepted == asd.tie_length(zero, matches, regrets, zero.budget)
        else:
            assert (verdict.accepted, verdict.tokens.tolist()) == expected


def test_strict_at_zero_on_every_recorded_block():
    rows, errors, manifest, _ = read_rows(None)
    assert len(rows) >= 256
    assert not errors
    expected = [asd.strict_length(row.matches) for row in rows]
    zeros = [RegretBudget(8.0, 0.25, 0, v) for v in VARIANTS] + [RegretBudget(0.0, 2.0, 2, v) for v in VARIANTS]
    for rule in [*zeros, RegretBudget(8.0, 0.0, 2, SUFFIX)]:
        played, bad = replay(rule, rows, manifest["vocab_size"])
        assert not bad
        assert [p.accepted for p in played] == expected
    ties = sum(bool(((row.regrets == 0) & ~row.matches).any()) for row in rows)
    loose, _ = replay(RegretBudget(8.0, 0.0, 2, NORMALIZED), rows)
    assert sum(p.accepted != n for p, n in zip(loose, expected)) <= ties


@settings(max_examples=200, deadline=None)
@given(greedy_blocks(), regret_budgets())
def test_compact_scores_say_the_same_as_logits(b, rule):
    rows = b.logits
    ids = rows.argmax(axis=1)
    scores = rows.max(axis=1), ids, rows[np.arange(b.size), b.tokens], b.tokens
    ours, theirs = rule.verify_scores(*scores, vocab_size=rows.shape[1]), rule.verify(b)
    assert (ours.accepted, ours.tokens.tolist(), ours.state) == (theirs.accepted, theirs.tokens.tolist(), theirs.state)


def test_outcomes_are_the_verdict():
    rule = RegretBudget(1.0, 1.0, 1)
    b = block([1], [[1, 0.5, 0], [0, 0, 1]])
    ((probability, accepted, law, state),) = rule.outcomes(b)
    verdict = rule.verify(b)
    assert (probability, accepted, law.tolist(), state) == (1, verdict.accepted, [0, 0, 1], verdict.state)


# The differences of the variants.


def test_a_tie_with_an_exhausted_budget():
    """suffix accepts it, normalized rejects it."""
    request = [((False,), (1.0,)), ((False,), (0.0,))]
    assert run_regret_request(RegretBudget(1.0, 1.0, 1, SUFFIX), request)[0] == [1, 1]
    assert run_regret_request(RegretBudget(1.0, 1.0, 1, NORMALIZED), request)[0] == [1, 0]


def test_a_tie_at_gate_zero():
    """suffix rejects it (strict shortcut), normalized accepts it."""
    tie = [((False,), (0.0,))]
    assert run_regret_request(RegretBudget(1.0, 0.0, 1, SUFFIX), tie)[0] == [0]
    assert run_regret_request(RegretBudget(1.0, 0.0, 1, NORMALIZED), tie)[0] == [1]


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 4), st.integers(0, 3), regret_blocks())
def test_elsewhere_equal_reach_makes_them_equal(budget, cap, b):
    """g_suffix = g_normalized / K, g > 0: equal but for ties met with nothing left, and slack, which quarters exclude."""
    matches, regrets = b
    size = len(matches)
    accepted = [
        run_regret_request(RegretBudget(budget, Fraction(1, 2) * scale, cap, v), [b])[0][0]
        for v, scale in ((SUFFIX, 1), (NORMALIZED, size))
    ]
    spent = sum(r for r, m in zip(regrets[: accepted[1]], matches) if not m)
    blocked = accepted[1] < size and regrets[accepted[1]] == 0 and spent >= budget
    assert accepted[0] == accepted[1] or blocked


def test_the_published_gate_divides():
    """normalized, K = 5: r = .1 at s = 1/5 passes g = .5 as r / s, and r = g s; at .3, s = 3/5 the two part by a rounding."""
    regret, value, gate = 0.3, 3 / 5, 0.3 / (3 / 5)
    assert regret / value <= gate
    assert RegretBudget(1.0, gate, 1, NORMALIZED).within_gate(regret, 2, 5)
    apart = [
        (r, i)
        for r in (n / 100 for n in range(1, 100))
        for i in range(7)
        for g in ((7 - i) and r / ((7 - i) / 7),)
        if (r / ((7 - i) / 7) <= g) != (r <= g * ((7 - i) / 7))
    ]
    assert apart  # where the forms differ the rule follows the published one
    for r, i in apart:
        assert RegretBudget(1.0, r / ((7 - i) / 7), 1, NORMALIZED).within_gate(r, i, 7)


def test_normalized_charges_what_it_admitted():
    """Admitted by the running sum .9 + 0 + .1 <= 1; charged one by one, .1 > 1 - .9 would fail."""
    assert 0.9 + 0.1 <= 1 < 0.9 + 0.1 + 1e-15
    assert 0.1 > 1 - 0.9
    accepted, state = run_regret_request(
        RegretBudget(1.0, 1.0, 2, NORMALIZED), [((False, True, False), (0.9, 0.0, 0.1))]
    )
    assert accepted == [3]
    assert (state.spent, state.remaining) == (1.0, 0.0)


def test_the_published_tolerance_overspends_once_a_block():
    """A1: what is left is clamped at 0, so n blocks reach B + n 1e-9, exactly."""
    rule, n = RegretBudget(1, INF, 1, SUFFIX), 50
    requests = [((False,), (1 + SLACK,))] + [((False,), (SLACK,))] * (n - 1)
    accepted, state = run_regret_request(rule, requests)
    assert accepted == [1] * n
    assert state.spent == 1 + n * SLACK == asd.spend_bound(rule, n)


# A1 to A5 on whole requests; the broken rules each fail one.
SEARCH = settings(max_examples=500, database=None, deadline=None, derandomize=True, phases=[Phase.generate])


def violations(request, rule=None):
    """Ids of the claims among A1 to A5 that this request breaks, judged by `theory.asd` alone."""
    rule, found, left = rule or request.rule, set(), request.rule.budget
    state = rule.start()
    for matches, regrets in request.blocks:
        verdict = rule.verify_scores(*compact_scores(matches, regrets), state)
        taken = [c for c in verdict.state.ledger if c.block == state.blocks]
        if len(taken) > asd.exceptions_bound(rule, len(matches)):
            found.add("A2")
        bounds = asd.regret_bounds(rule, [c.position for c in taken], len(matches))
        if any(c.regret > b for c, b in zip(taken, bounds)):
            found.add("A3")
        if 0 in (rule.cap, rule.budget) and verdict.accepted != asd.strict_length(matches):
            found.add("A4")
        if verdict.accepted != asd.longest_feasible(rule, matches, regrets, left):
            found.add("A5")
        left, state = max(left - sum(c.regret for c in taken), 0), verdict.state
    if state.spent > asd.spend_bound(rule, len(request.blocks)):
        found.add("A1")
    return found


@settings(max_examples=150, deadline=None)
@given(regret_requests())
def test_a1_to_a5_hold(request):
    assert violations(request) == set()


@pytest.mark.parametrize(
    ("rule", "variant", "claim"),
    [
        (BROKEN_BUDGETS[0], SUFFIX, "A1"),
        (BROKEN_BUDGETS[0], NORMALIZED, "A1"),
        (BROKEN_BUDGETS[1], SUFFIX, "A5"),
        (BROKEN_BUDGETS[1], NORMALIZED, "A5"),
        (BROKEN_BUDGETS[2], NORMALIZED, "A3"),
        (BROKEN_BUDGETS[2], SUFFIX, "A5"),
    ],
)
def test_the_search_finds_what_each_broken_variant_breaks(rule, variant, claim):
    requests = regret_requests(variant, rule)
    witness = find(requests, lambda r: claim in violations(r), settings=SEARCH)
    assert violations(replace(witness, rule=RegretBudget(*vars(witness.rule).values()))) == set()


def test_the_search_does_not_find_what_is_not_broken():
    with pytest.raises(NoSuchExample):
        find(regret_requests(SUFFIX, GateWithoutValue), lambda r: "A3" in violations(r), settings=SEARCH)


@settings(max_examples=100, deadline=None)
@given(regret_requests())
def test_the_vectorised_scan_is_the_rule(request):
    rule = replace(request.rule, budget=float(request.rule.budget), gate=float(request.rule.gate))
    matches = np.array([[m for m, _ in request.blocks]] * 3)
    regrets = np.array([[r for _, r in request.blocks]] * 3, dtype=float)
    sample = simulate_requests(rule, matches, regrets)
    accepted, state = run_regret_request(rule, [(m, tuple(float(x) for x in r)) for m, r in request.blocks])
    assert sample.accepted.tolist() == [accepted] * 3
    assert sample.spent[:, -1].tolist() == [float(state.spent)] * 3
    assert sample.exceptions.sum(axis=1).tolist() == [len(state.ledger)] * 3


# Bad input.


def test_the_rule_is_registered():
    assert "asd" in names()


@pytest.mark.parametrize(
    "settings_",
    [
        {"budget": math.nan},
        {"budget": -1.0},
        {"gate": math.nan},
        {"gate": -0.1},
        {"cap": 1.5},
        {"cap": math.nan},
        {"cap": -1},
        {"budget": "8"},
        {"budget": True},
        {"variant": "deepseek"},
    ],
)
def test_bad_controls_are_usage_errors(settings_):
    name = next(iter(settings_))
    with pytest.raises(UsageError, match=name):
        RegretBudget(**{"budget": 8.0, "gate": 0.25, "cap": 2, "variant": SUFFIX, **settings_})


@pytest.mark.parametrize(
    ("tokens", "rows", "message"),
    [
        ([1], [[0, math.nan, 1], [0, 0, 0]], "row 0, token 1 is NaN"),
        ([1], [[0, 1, 1], [0, INF, 0]], r"row 1, token 1 is \+inf"),
        ([1], [[-INF, -INF], [0, 0]], "row 0 is -inf everywhere"),
        ([0, 3], [[0, 1, 2], [0, 1, 2], [0, 1, 2]], "position 1 is 3, outside"),
        ([0, -1], [[0, 1, 2], [0, 1, 2], [0, 1, 2]], "position 1 is -1, outside"),
        ([0, 1], [[0, 1, 2], [0, 1, 2]], "K = 2 drafts needs logits"),
    ],
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_bad_blocks_name_row_and_position(tokens, rows, message, variant):
    b = Block(np.array(tokens), logits=np.array(rows, dtype=float), info={"request": 7, "row": 12})
    with pytest.raises(DataError, match=f"request 7, row 12: .*{message}"):
        RegretBudget(INF, INF, INF, variant).verify(b)


def test_a_block_without_scores_is_an_error():
    with pytest.raises(DataError, match="needs the logits"):
        ANYTHING.verify(Block(np.array([0])))


@pytest.mark.parametrize(
    ("position", "part", "value", "message"),
    [
        (1, 0, math.nan, "position 1: its maximum is not finite"),
        (2, 0, INF, "position 2: its maximum is not finite"),
        (0, 0, -INF, "position 0: its maximum is not finite"),
        (1, 1, -1, r"position 1: its argmax id is outside \[0, 9\)"),
        (1, 1, 9, r"position 1: its argmax id is outside \[0, 9\)"),
        (0, 2, math.nan, "position 0: its drafted logit is NaN"),
        (1, 2, INF, "position 1: its drafted logit is NaN"),
        (1, 2, 0.5, "position 1: its drafted logit exceeds its maximum"),
        (1, 3, -1, "position 1: its drafted id is outside"),
    ],
)
def test_bad_scores_name_row_and_position(position, part, value, message):
    scores = [np.zeros(3), np.zeros(3, dtype=int), np.array([-1.0, -1.0]), np.array([1, 1])]
    assert ANYTHING.verify_scores(*scores, vocab_size=9).accepted == 2
    scores[part] = scores[part].copy()
    scores[part][position] = value
    with pytest.raises(DataError, match=f"request 3, row 5: {message}"):
        ANYTHING.verify_scores(*scores, info={"request": 3, "row": 5}, vocab_size=9)


def test_a_match_must_lie_at_the_maximum():
    with pytest.raises(DataError, match="not at the maximum"):
        ANYTHING.verify_scores([0.0, 0.0], [1, 1], [-0.5], [1])
    with pytest.raises(DataError, match="needs K \\+ 1 maxima"):
        ANYTHING.verify_scores([0.0], [1], [-0.5], [0])


def test_one_bad_row_of_a_thousand_leaves_the_other_999():
    rng = np.random.default_rng(0)
    good = [Block(rng.integers(0, 8, 4), logits=rng.normal(size=(5, 8))) for _ in range(1000)]
    bad = list(good)
    broken = good[417].logits.copy()
    broken[2, 3] = math.nan
    bad[417] = Block(good[417].tokens, logits=broken)
    rule = RegretBudget(INF, 2.0, 2)
    rows, errors, _, _ = read_rows(bad)
    played, more = replay(rule, rows)
    assert len(played) == 999
    assert more == []
    assert [(e["row"], e["cause"]) for e in errors] == [(417, "logits row 2, token 3 is NaN")]
    whole, _ = replay(rule, read_rows(good)[0])
    assert [p.accepted for p in played] == [p.accepted for p in whole if p.row.row != 417]


def test_one_bad_row_of_compact_scores_leaves_its_request_as_it_was():
    scores = logits.greedy_sample()
    drafted = scores.drafted_logit.copy()
    drafted[3, 2] = math.nan
    rows, errors, _, _ = read_rows(scores._replace(drafted_logit=drafted))
    played, more = replay(RegretBudget(8.0, 0.25, 2), rows)
    assert errors == []
    assert [e["row"] for e in more] == [3]
    assert "row 3: position 2" in more[0]["cause"]
    assert len(played) == len(rows) - 1
    assert played[3].before == played[2].after


def test_broken_rules_are_rules():
    assert BudgetResetEachBlock(1.0, 1.0, 1).verify(block([1], [[1, 0], [0, 1]])).state.remaining == 1.0
