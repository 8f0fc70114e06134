"""Sequence bounds: golden values, their order, lower bounds, huge horizons, what they refuse."""

from __future__ import annotations

import math
from fractions import Fraction as F
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import spectheory as spec
from spectheory import exact, models
from spectheory.errors import CostError, UsageError
from spectheory.ledger.sequence import BONUS_WITNESS
from spectheory.testing import TableRule, engines
from spectheory.theory import chain, efficiency, joint, lower, sequence
from spectheory.theory.bounds import sequence_bounds
from spectheory.verifiers import Nucleus, Standard
from spectheory.verifiers.block import BlockVerification

C4 = models.Tabular([[0.4, 0.2, 0.3, 0.1]], [[0.1, 0.5, 0.1, 0.3]])
MARKOV = models.Tabular(
    [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]], [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]]
)
NSD = Nucleus(0.8)
UPPER = ("coupling", "union", "union_target", "uniform", "pinsker", "bretagnolle_huber", "pinsker_reverse")
UPPER += ("bretagnolle_huber_reverse", "hellinger", "composition", "joint", "best")
LOWER = ("lower_marginal", "lower_count", "lower_moments", "hellinger", "best")


@pytest.mark.parametrize(
    ("model", "block_size", "length", "coupling", "union", "target"),
    [
        (C4, 1, 2, 0.36, 0.36, 0.405454545),
        (C4, 1, 4, 0.5844, 0.7104, 0.786870490),
        (C4, 2, 4, 0.6924, 0.9696, 1.029493146),
        (C4, 4, 4, 0.7599, 1.2, 1.2),
        (MARKOV, 1, 2, 0.11, 0.11, 0.111666667),
        (MARKOV, 2, 4, 0.2573, 0.2706, 0.286657870),
        (MARKOV, 4, 4, 0.3129, 0.3329, 0.3656),
    ],
)
def test_golden_bounds(model, block_size, length, coupling, union, target):
    found = sequence_bounds(NSD, model, length=length, block_size=block_size)
    assert found["coupling"].upper == pytest.approx(coupling, abs=1e-9)
    assert found["union"].upper == pytest.approx(union, abs=1e-9)
    assert found["union_target"].upper == pytest.approx(target, abs=1e-9)


@pytest.mark.parametrize(
    ("block_size", "length", "value"),
    [(1, 2, 0.281607136), (1, 4, 0.555704749), (2, 4, 0.758461887), (4, 4, 0.938690454)],
)
def test_golden_chain_rule(block_size, length, value):
    made = chain.chain(NSD, C4, length=length, block_size=block_size)
    assert sequence.kl_chain(made) == pytest.approx(value, abs=1e-9)


def test_the_kernel_convention_fixes_the_union_bound_under_the_target():
    rule = TableRule(np.ones((1, 2)), np.array([[0.0, 1.0]]))
    model = models.Tabular([[0.5, 0.5]], [[1.0, 0.0]])
    found = sequence_bounds(rule, model, length=3, block_size=1)
    assert found["union"].upper == pytest.approx(1, abs=1e-12)
    assert found["union_target"].upper == pytest.approx(9 / 8, abs=1e-12)
    assert found["coupling"].upper == pytest.approx(3 / 4, abs=1e-12)
    assert exact.sequence_deviation(rule, model, length=3, block_size=1) == 0.75  # the coupling bound is attained


@settings(max_examples=150)
@given(engines())
def test_every_bound_holds_and_none_is_out_of_order(engine):
    rule, model, length, block_size = engine
    found = sequence_bounds(rule, model, length=length, block_size=block_size)
    true = float(exact.sequence_deviation(rule, model, length=length, block_size=block_size))
    for name in UPPER:
        assert true <= found[name].upper + 1e-12, name
    for name in LOWER:
        assert true >= found[name].lower - 1e-12, name
    coupling = found["coupling"].upper
    for name in ("union", "union_target", "uniform"):
        assert coupling <= found[name].upper + 1e-12, name
    for name in UPPER:  # all of them bound the joint law of tokens and positions, whose TV this is within 1e-4
        assert found["joint"].upper <= found[name].upper + 1e-4 or name == "best", name
    if block_size >= length:
        assert sequence.kl_chain(chain.chain(rule, model, length=length, block_size=block_size)) == pytest.approx(
            exact.sequence_kl(rule, model, length=length, block_size=block_size)[1], abs=1e-9
        )


@settings(max_examples=40)
@given(engines())
def test_deviation_never_falls_with_the_horizon(engine):
    rule, model, length, block_size = engine
    curve = [exact.sequence_deviation(rule, model, length=t, block_size=block_size) for t in range(1, length + 1)]
    assert all(a <= b for a, b in pairwise(curve))


def test_composition_is_two_sided_without_bonus_steps_and_may_lose_with_them():
    alone = sequence_bounds(NSD, C4, length=4, block_size=4)["composition"]
    assert alone.lower <= 0.5151 <= alone.upper
    assert alone.upper - alone.lower <= 1e-4
    golden = models.Tabular([[0.7, 0.3]], [[0.4, 0.6]])
    found = sequence_bounds(NSD, golden, length=2, block_size=1)
    assert found["composition"].upper == pytest.approx(0.33, abs=1e-4)  # the exact value is 0.3
    assert found["union"].upper == pytest.approx(0.3, abs=1e-12)
    assert found["best"].upper == pytest.approx(0.3, abs=1e-12)


def joint_reference(c, t=0, context=None, j=0, ours=1.0, theirs=1.0):
    """TV of the joint laws over (tokens, j) by recursion over both."""
    context = c.initial if context is None else context
    if t == c.length:
        return max(ours - theirs, 0.0)
    total = 0.0
    for x in range(c.p.shape[1]):
        to, p, out = c.successors[context, x], c.p[context, x], c.out[context, x]
        if j == c.block_size:
            total += joint_reference(c, t + 1, to, 0, ours * p, theirs * p)
        elif out > 0:
            for following, mass in ((j + 1, c.accepted[context, x]), (0, c.corrected[context, x])):
                total += joint_reference(c, t + 1, to, following, ours * mass, theirs * p * mass / out)
    return total


@settings(max_examples=40)
@given(engines(max_length=3))
def test_joint_composition_is_the_deviation_of_the_joint_laws(engine):
    rule, model, length, block_size = engine
    made = chain.chain(rule, model, length=length, block_size=block_size)
    true = joint_reference(made)
    assert true - 1e-12 <= joint.joint_tv(made, 1e-5).upper <= true + 1e-5


def test_the_lower_hellinger_side_needs_no_bonus():
    rule, model, length, block_size = BONUS_WITNESS
    made = chain.chain(rule, model, length=length, block_size=block_size)
    true = float(exact.sequence_deviation(rule, model, length=length, block_size=block_size))
    assert true == pytest.approx(0.9993537, abs=1e-7)
    assert sequence.hellinger_defect(made) == pytest.approx(0.9994267, abs=1e-7)
    assert sequence_bounds(rule, model, length=length, block_size=block_size)["hellinger"].lower == 0
    with pytest.raises(UsageError, match="block_size >= length"):
        sequence.hellinger_lower(made)


def test_the_standard_rule_deviates_by_rounding_only():
    for length in (1, 10, 1000):
        found = sequence_bounds(Standard(), MARKOV, length=length, block_size=4)
        assert found["best"].upper <= 1e-12 * length
        assert found["uniform"].upper <= 1e-12 * length


def test_disjoint_supports_make_divergences_infinite_and_bounds_trivial():
    rule = TableRule(np.ones((1, 2)), np.array([[0.0, 1.0]]))
    found = sequence_bounds(rule, models.Tabular([[0.0, 1.0]], [[1.0, 0.0]]), length=3, block_size=2)
    assert math.isinf(found["pinsker"].upper)
    assert found["bretagnolle_huber"].upper == 1
    assert found["best"].lower == pytest.approx(1, abs=1e-9)


def test_a_million_tokens():
    found = sequence_bounds(NSD, MARKOV, length=10**6, block_size=8)
    assert found["union"].upper == pytest.approx(70534.14, rel=1e-6)
    assert 0.9998 < found["best"].lower <= found["best"].upper == 1
    near = models.Tabular(MARKOV.target, 0.999999 * MARKOV.target + 0.000001 * MARKOV.draft)
    slight = sequence_bounds(NSD, near, length=10**6, block_size=8)
    assert 0 < slight["best"].lower < slight["best"].upper < 2e-4  # the union bound says .078
    assert slight["union"].upper == pytest.approx(0.0778, abs=1e-4)


def test_doubling_is_the_sum_it_stands_for():
    made = chain.chain(NSD, MARKOV, length=37, block_size=3)
    m, g = chain.transfer(made, made.out, made.p), chain.gains(made, np.array([0.1, 0.0, 0.2]))
    v, total = chain.start(made), 0.0
    for _ in range(37):
        total, v = total + v @ g, v @ m
    assert chain.accumulate(made, m, g) == pytest.approx(total, rel=1e-11)
    assert chain.accumulate(made, m, g) >= total


@settings(max_examples=30)
@given(engines())
def test_merging_tokens_of_equal_ratio_changes_no_bound(engine):
    rule, model, length, block_size = engine
    if len(model.target) > 1:
        model = models.Tabular(model.target[:1], model.draft[:1])
        rule = Nucleus(0.8)
    made = chain.chain(rule, model, length=length, block_size=block_size)
    lumps = chain.lumped(made.p[0], made.accepted[0], made.corrected[0])
    merged = chain.exogenous([lumps], length=length, block_size=block_size)
    for bound in (sequence.coupling, sequence.union, sequence.union_target, sequence.hellinger, sequence.kl_chain):
        assert bound(merged) == pytest.approx(bound(made), abs=1e-10)


def test_exogenous_rows_are_a_mixture_of_visible_contexts():
    """Two rows drawn at random: the same as one table over (row, token), which the exact engine can enumerate."""
    rows = [
        (MARKOV.target[s], *map(lambda w, s=s: w[s], chain.emitted_weights(NSD, MARKOV.target, MARKOV.draft)))
        for s in (0, 2)
    ]
    made = chain.exogenous(rows, length=3, block_size=2)
    accept = np.concatenate([r[1] for r in rows]) / 2
    rule = TableRule((accept / made.out[0])[None], made.corrected / max(made.corrected.sum(), 1e-300))
    true = exact.sequence_deviation(rule, models.Tabular(made.p, made.out), length=3, block_size=2)
    assert true <= sequence.coupling(made)
    assert lower.count(made) <= true


def test_what_the_bounds_refuse():
    with pytest.raises(UsageError, match="must be >= 1"):
        sequence_bounds(NSD, C4, length=0, block_size=1)
    with pytest.raises(UsageError, match="must be >= 1"):
        sequence_bounds(NSD, C4, length=1, block_size=0)
    with pytest.raises(UsageError, match="token verifiers"):
        sequence_bounds(BlockVerification(), C4, length=2, block_size=1)
    with pytest.raises(UsageError, match="not tabular"):
        sequence_bounds(NSD, object(), length=2, block_size=1)
    with pytest.raises(CostError, match="STATE_CAP"):
        sequence_bounds(NSD, models.random_tabular(np.random.default_rng(0), 8, order=4), length=2, block_size=4)


def test_speed():
    beta = efficiency.least_acceptance(2.801333, 4, 0.05)
    assert beta == pytest.approx(0.8, abs=1e-6)
    assert math.isnan(efficiency.least_acceptance(4.2, 4, 0.05))  # the cap is 4.1667
    assert efficiency.least_acceptance(1, 1, 1.0) == pytest.approx(1)  # a draft as slow as the target never gains
    assert efficiency.deviation_floor(F(4, 5), F(1, 2)) == F(3, 10)  # C4 at top_p = .8 pays exactly this
    assert efficiency.least_deviation(2.801333, 0.5, 4, 0.05) == pytest.approx(0.3, abs=1e-6)
    assert efficiency.tokens_from_rows(np.array([0.7, 0.9]), 4) == pytest.approx(3.3616)
    assert efficiency.tokens_from_blocks(np.array([[1.0, 0.0], [0.5, 0.5]])) == pytest.approx(1 + (1 + 0.75) / 2)


def test_published_speedups():
    small, five, eight, sixteen = efficiency.explain_speedups(5.16, 3.15, [4, 5, 8, 16])
    assert math.isnan(small["cost_ratio"])  # 5 tokens a call cannot make 5.16
    assert five["cost_ratio"] == pytest.approx(0.032558, abs=1e-6)
    assert eight["cost_ratio"] == pytest.approx(0.093023, abs=1e-6)
    assert sixteen["cost_ratio"] == pytest.approx(0.143411, abs=1e-6)
    for row, k in ((five, 5), (eight, 8), (sixteen, 16)):
        d = row["deviation"]  # at acceptance 1 the whole draft law comes through: Delta = D
        assert efficiency.ratio_over_standard(1.0, d, k) == pytest.approx(3.15, rel=1e-9)
        assert efficiency.speedup_of(1.0, k, row["cost_ratio"]) == pytest.approx(5.16, rel=1e-9)
        free = row["acceptance_free_draft"]
        assert efficiency.speedup_of(free, k, 0.0) == pytest.approx(5.16, rel=1e-9)
        base = 1 - row["standard_acceptance_free_draft"]
        assert efficiency.ratio_over_standard(free, base, k) == pytest.approx(3.15, rel=1e-9)


def test_the_public_name():
    found = spec.theory.nsd.sequence_bounds(NSD, C4, length=2, block_size=1)
    assert set(UPPER + LOWER) <= set(found)
    assert all(i.kind == "certified" for i in found.values())
