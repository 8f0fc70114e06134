"""The exact engine over sequences and blocks: slow obvious references, golden values, exactness of lossless rules."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings

import spectheory as spec
from spectheory import exact, models
from spectheory.errors import CostError, DataError, UsageError
from spectheory.testing import engines, tabulars
from spectheory.verifiers import Nucleus, Standard
from spectheory.verifiers.block import BlockVerification
from spectheory.verifiers.broken_joint import NoStop, ResidualBonus, SharedUniform, StaleBonus


def tenths(*rows):
    return np.array([[F(x, 10) for x in row] for row in rows], dtype=object)


C4 = models.Tabular(tenths((4, 2, 3, 1)), tenths((1, 5, 1, 3)))
MARKOV = models.Tabular(tenths((7, 2, 1), (1, 6, 3), (3, 3, 4)), tenths((5, 3, 2), (3, 4, 3), (2, 5, 3)))
NSD = Nucleus(F(4, 5))


def reference_law(rule, model, length, block_size):
    """The engine by plain recursion over tokens and coins."""
    table, law = {}, {}
    for s in range(len(model.target)):
        p, q = model.target[s], model.draft[s]
        accept, residual = (
            np.asarray(x)
            for x in (rule.acceptance(model.target, model.draft), rule.residual(model.target, model.draft))
        )
        reject = sum(q[x] * (1 - accept[s][x]) for x in range(len(p)))
        table[s] = [(q[x] * accept[s][x], reject * residual[s][x], p[x]) for x in range(len(p))]

    def grow(prefix, context, j, mass):
        if len(prefix) == length:
            law[prefix] = law.get(prefix, 0) + mass
            return
        for x, (kept, corrected, bonus) in enumerate(table[context]):
            to, longer = int(model.successors[context][x]), (*prefix, x)
            if j == block_size:
                grow(longer, to, 0, mass * bonus)
            else:
                grow(longer, to, j + 1, mass * kept)
                grow(longer, to, 0, mass * corrected)

    grow((), model.initial, 0, F(1))
    return law


def test_one_token_vocabulary():
    model = models.Tabular([[1.0]], [[1.0]])
    assert exact.sequence_law(Nucleus(0.5), model, length=9, block_size=2).item() == 1
    assert exact.sequence_deviation(Standard(), model, length=9, block_size=2) == 0
    law = exact.call_law(Standard(), model, length=9, block_size=2)
    assert law.calls.tolist() == [0, 0, 0, 1] + [0] * 6
    assert law.tokens_per_call == 3


def test_disjoint_supports_and_full_acceptance():
    model = models.Tabular([[1.0, 0.0]], [[0.0, 1.0]])
    assert exact.sequence_deviation(Standard(), model, length=3, block_size=2) == 0
    assert exact.sequence_kl(Nucleus(1.0), model, length=2, block_size=1) == (0, 0)  # the support of p, not of q


@settings(max_examples=60)
@given(engines(max_length=3))
def test_enumeration_is_the_recursion_exactly(engine):
    rule, model, length, block_size = engine
    law = exact.sequence_law(rule, model, length=length, block_size=block_size)
    slow = reference_law(rule, model, length, block_size)
    assert all(law[x] == slow[x] for x in slow)
    assert law.sum() == 1


@settings(max_examples=60)
@given(tabulars(), engines())
def test_the_standard_rule_is_lossless_exactly(model, engine):
    _, _, length, block_size = engine
    law = exact.sequence_law(Standard(), model, length=length, block_size=block_size)
    assert (law == exact.target_law(model, length=length)).all()


@pytest.mark.parametrize("block_size", [1, 2, 3, 7])
def test_the_standard_rule_is_lossless_in_floats(block_size):
    model = models.random_tabular(np.random.default_rng(block_size), 4, order=1)
    for length in (1, 2, 5, 7):
        law = exact.sequence_law(Standard(), model, length=length, block_size=block_size)
        assert abs(law - exact.target_law(model, length=length)).max() <= 1e-14


def test_golden_example():
    model = models.Tabular(tenths((7, 3)), tenths((4, 6)))
    law = exact.sequence_law(NSD, model, length=2, block_size=1)
    assert (law == np.outer(model.draft[0], model.target[0])).all()
    assert exact.sequence_deviation(NSD, model, length=2, block_size=1) == F(3, 10)


@pytest.mark.parametrize(
    ("model", "block_size", "length", "deviation"),
    [
        (C4, 1, 2, F("0.3")),
        (C4, 1, 4, F("0.37206")),
        (C4, 2, 4, F("0.45408")),
        (C4, 4, 4, F("0.5151")),
        (MARKOV, 1, 2, F("0.1")),
        (MARKOV, 2, 4, F("0.1692")),
        (MARKOV, 4, 4, F("0.1935")),
    ],
)
def test_golden_deviations(model, block_size, length, deviation):
    assert exact.sequence_deviation(NSD, model, length=length, block_size=block_size) == deviation


def test_golden_divergence():
    assert exact.sequence_kl(NSD, C4, length=2, block_size=1)[1] == pytest.approx(0.260203637, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "deviation", "mean_accepted"),
    [
        (Standard(), 0, F("0.75")),
        (BlockVerification(), 0, F("0.85")),
        (ResidualBonus(), F("0.075"), F("0.75")),
        (NoStop(), F("0.156"), F("1.006")),
    ],
)
def test_golden_blocks(rule, deviation, mean_accepted):
    law = exact.block_law(rule, C4, block_size=2)
    assert spec.pmf.total_variation(law.tokens.ravel(), exact.target_law(C4, length=3).ravel()) == deviation
    assert law.mean_accepted == mean_accepted


def test_stale_bonus_shows_only_with_context():
    law = exact.block_law(StaleBonus(), MARKOV, block_size=1).tokens
    assert spec.pmf.total_variation(law.ravel(), exact.target_law(MARKOV, length=2).ravel()) == F("0.16")
    assert exact.sequence_deviation(StaleBonus(), C4, length=4, block_size=2) == 0


@pytest.mark.parametrize("rule", [SharedUniform(), ResidualBonus(), StaleBonus(), NoStop()])
def test_joint_faults_pass_the_one_step_audit_and_are_caught_here(rule):
    for s in range(3):
        assert exact.step_deviation(rule, MARKOV.target[s], MARKOV.draft[s]) == 0
    assert exact.sequence_deviation(rule, MARKOV, length=4, block_size=2) > F(1, 100)


def test_shared_uniform_is_exact_at_the_first_position():
    found = exact.token_marginals(SharedUniform(), C4, length=3, block_size=2)
    assert found.deviation[0] == 0
    assert exact.sequence_deviation(SharedUniform(), C4, length=3, block_size=2) > 0


@settings(max_examples=25)
@given(tabulars(max_vocab=2), engines(max_length=3))
def test_token_rules_by_their_block_outcomes(model, engine):
    length, block_size = engine[2], min(engine[3], 3)
    for rule in (Standard(), NSD):
        via_blocks = exact.engine_law(rule, model, length=length, block_size=block_size)
        assert (via_blocks == exact.sequence_law(rule, model, length=length, block_size=block_size)).all()


@settings(max_examples=25)
@given(tabulars(max_vocab=2), engines(max_length=3))
def test_block_verification_is_lossless_and_never_shorter(model, engine):
    length, block_size = engine[2], min(engine[3], 3)
    law = exact.sequence_law(BlockVerification(), model, length=length, block_size=block_size)
    assert (law == exact.target_law(model, length=length)).all()
    ours, theirs = (exact.block_law(r, model, block_size=block_size) for r in (BlockVerification(), Standard()))
    assert ours.mean_accepted >= theirs.mean_accepted
    # token-wise E[accepted]: call_law over a one-token horizon sees exactly the first call
    first = exact.call_law(Standard(), model, length=1, block_size=block_size)
    assert (theirs.accepted == first.accepted).all()


@settings(max_examples=40)
@given(engines())
def test_marginals_and_calls(engine):
    rule, model, length, block_size = engine
    law = exact.sequence_law(rule, model, length=length, block_size=block_size)
    found = exact.token_marginals(rule, model, length=length, block_size=block_size)
    for t in range(length):
        others = tuple(a for a in range(length) if a != t)
        assert (found.emitted[t] == law.sum(axis=others)).all()
    calls = exact.call_law(rule, model, length=length, block_size=block_size)
    assert calls.calls.sum() == calls.accepted.sum() == 1
    assert calls.calls[0] == 0
    assert -(-length // (block_size + 1)) <= calls.mean_calls <= length
    assert 1 <= calls.tokens_per_call <= block_size + 1


def test_calls_against_simulation_free_cases():
    half = models.Tabular(tenths((5, 5)), tenths((5, 5)))
    law = exact.call_law(Standard(), half, length=7, block_size=2)  # p = q: every call commits 3
    assert law.calls.tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    apart = models.Tabular(tenths((10, 0)), tenths((0, 10)))
    assert exact.call_law(Standard(), apart, length=4, block_size=3).calls[4] == 1


@pytest.mark.parametrize("sizes", [{"length": 0, "block_size": 1}, {"length": 1, "block_size": 0}])
def test_sizes_below_one(sizes):
    for call in (exact.sequence_law, exact.sequence_deviation, exact.token_marginals, exact.call_law, exact.engine_law):
        with pytest.raises(UsageError, match="must be >= 1"):
            call(Standard(), C4, **sizes)
    with pytest.raises(UsageError, match="must be >= 1"):
        exact.block_law(Standard(), C4, block_size=0)


def test_caps_are_named():
    with pytest.raises(CostError, match="ENUMERATION_CAP"):
        exact.sequence_law(Standard(), C4, length=30, block_size=2)
    with pytest.raises(CostError, match="64"):
        exact.sequence_law(Standard(), models.Tabular([[1.0]], [[1.0]]), length=65, block_size=2)
    with pytest.raises(CostError, match="BLOCK_CAP"):
        exact.engine_law(BlockVerification(), MARKOV, length=3, block_size=20)


def test_what_offers_no_outcomes():
    class Opaque:
        def verify(self, block, state, rng):
            raise AssertionError

    with pytest.raises(UsageError, match="no outcomes"):
        exact.block_law(Opaque(), C4, block_size=1)
    with pytest.raises(UsageError, match="decides by blocks"):
        exact.call_law(BlockVerification(), C4, length=2, block_size=1)


def test_outcomes_that_lose_mass_are_an_error():
    class Leaky(Standard):
        def outcomes(self, block, state=None):
            return super().outcomes(block, state)[:1]

    with pytest.raises(DataError, match="sum to"):
        exact.block_law(Leaky(), C4, block_size=2)


def test_states_travel_from_block_to_block():
    class Strict(Standard):
        """Accepts everything in its first call, nothing later: the state is the number of calls."""

        def start(self):
            return 0

        def outcomes(self, block, state=None):
            accepted = block.size if state == 0 else 0
            return [(1, accepted, block.p[accepted], state + 1)]

    found = exact.engine_states(Strict(), C4, length=4, block_size=2)
    assert {state for _, state in found} == {2}
    assert sum(found.values()) == 1
    law = exact.engine_law(Strict(), C4, length=2, block_size=2)
    assert (law == np.outer(C4.draft[0], C4.draft[0])).all()
