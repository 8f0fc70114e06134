"""Every registered token rule: shapes, ranges, the protocol, the exact law against its definition, and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import spectheory as spec
from spectheory import verifiers
from spectheory.models import FAMILIES, synthetic_pairs
from spectheory.montecarlo import simulate_steps
from spectheory.protocols import BlockVerifier, TokenVerifier, depends_on_rejected, supports
from spectheory.testing import assert_law, assert_rate, pairs, rational_pairs

DEGENERATE = [
    ([1.0], [1.0]),
    ([0.5, 0.5], [0.5, 0.5]),
    ([1.0, 0.0], [0.0, 1.0]),
    ([0.5, 0.5, 0.0], [0.0, 0.0, 1.0]),
    ([0.0, 1.0], [1.0, 0.0]),
]


@pytest.mark.parametrize(("p", "q"), DEGENERATE)
def test_degenerate_pairs_give_laws(token_rule, p, q):
    law = spec.exact.output_law(token_rule, p, q)
    assert np.isfinite(law).all()
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert (law >= 0).all()


def test_conforms_to_the_protocols(token_rule):
    assert isinstance(token_rule, TokenVerifier)
    assert isinstance(token_rule, BlockVerifier)
    assert {"acceptance", "residual", "verify", "outcomes"} <= supports(token_rule)


@given(data=st.data())
def test_acceptance_and_residual_are_probabilities(token_rule, data):
    p, q = data.draw(pairs())
    accept = token_rule.acceptance(p, q)
    assert accept.shape == p.shape
    assert ((accept >= 0) & (accept <= 1 + 1e-12)).all()
    for x in np.flatnonzero((q > 0) & (accept < 1)):
        r = token_rule.residual(p, q, int(x)) if depends_on_rejected(token_rule) else token_rule.residual(p, q)
        assert r.sum() == pytest.approx(1, abs=1e-12)
        assert (r >= 0).all()


@given(data=st.data())
def test_exact_law_is_its_definition(token_rule, data):
    p, q = data.draw(rational_pairs(max_size=5))
    law = spec.exact.output_law(token_rule, p, q)
    expected = reference.output_law(token_rule, p, q)
    assert np.asarray(law, dtype=float) == pytest.approx(np.asarray(expected, dtype=float), abs=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_are_rows(token_rule, family):
    p, q = synthetic_pairs(family, 5, 7)
    law = spec.exact.output_law(token_rule, p, q)
    for i in range(5):
        assert law[i] == pytest.approx(spec.exact.output_law(token_rule, p[i], q[i]), abs=1e-13)


def test_torch_agrees_with_numpy(token_rule):
    import torch

    p, q = synthetic_pairs("dirichlet-1", 8, 16)
    ours = spec.exact.output_law(token_rule, p, q)
    theirs = spec.exact.output_law(token_rule, torch.tensor(p), torch.tensor(q))
    assert isinstance(theirs, torch.Tensor)
    assert theirs.numpy() == pytest.approx(ours, abs=1e-13)


def test_simulation_agrees_with_the_exact_law(token_rule, c4):
    """Three asserts at a false-alarm rate of 1e-9 each; a deviation of 0.02 in TV would be missed with rate 1e-9."""
    p, q = c4
    n = 200_000
    sample = simulate_steps(token_rule, p, q, n, seed=1)
    assert_law(sample.drafted[:, 0], q)
    assert_law(sample.emitted[:, 0], spec.exact.output_law(token_rule, p, q))
    assert_rate(int(sample.accepted.sum()), n, float(spec.exact.acceptance_rate(token_rule, p, q)))


def test_block_outcomes_match_the_step(token_rule, c4):
    """A block of one: its outcomes, averaged over drafts from q, emit the step's output law first."""
    p, q = c4
    law = np.zeros(4)
    for x in range(4):
        for weight, accepted, following, _ in token_rule.outcomes(spec.Block([x], p=np.array([p, p]), q=q[None])):
            law += q[x] * weight * (np.eye(4)[x] if accepted else following)
    assert law == pytest.approx(spec.exact.output_law(token_rule, p, q), abs=1e-14)


def test_coins_at_the_edges(c4):
    """The test is u < A, strictly: a coin of 0 never accepts a token without target mass, one ulp below A accepts."""
    rule, (p, q) = verifiers.Standard(), c4
    zero_p = np.array([[0.0, 1.0], [0.0, 1.0]])
    block = spec.Block([0], p=zero_p, q=np.array([[0.5, 0.5]]))
    assert rule.verify(block, None, spec.Coins(np.array([0.0]), np.array([0.0]))).tokens.tolist() == [1]
    a = float(rule.acceptance(p, q)[1])
    block = spec.Block([1], p=np.array([p, p]), q=q[None])
    for coin, accepted in ((a, 0), (np.nextafter(a, 0), 1), (1 - 2.0**-53, 0)):
        verdict = rule.verify(block, None, spec.Coins(np.array([coin]), np.array([0.999999])))
        assert verdict.accepted == accepted
        assert len(verdict.tokens) == accepted + 1


def test_a_generator_yields_acceptance_uniforms_then_the_residual(c4):
    p, q = c4
    block = spec.Block([1, 1, 1], p=np.array([p] * 4), q=np.array([q] * 3))
    uniforms = np.random.default_rng(5).random(4)
    a = verifiers.Standard().verify(block, None, np.random.default_rng(5))
    b = verifiers.Standard().verify(block, None, spec.Coins(uniforms[:3], uniforms[3:]))
    assert a.accepted == b.accepted
    assert a.tokens.tolist() == b.tokens.tolist()


@pytest.mark.parametrize(
    ("tokens", "q", "message"),
    [
        ([-1], [0.5, 0.5], r"drafted token at position 0 is -1, outside \[0, 2\)"),
        ([2], [0.5, 0.5], r"is 2, outside \[0, 2\)"),
        ([0], [0.0, 1.0], "draft probability 0"),
    ],
)
def test_bad_drafts_are_named(tokens, q, message):
    block = spec.Block(tokens, p=np.full((2, 2), 0.5), q=np.array([q]))
    with pytest.raises(spec.DataError, match=message):
        verifiers.Standard().verify(block, None, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("nsd", {}, "missing a required argument: 'top_p'"),
        ("nsd", {"top_p": 1.5}, "top_p must lie in"),
        ("nsd", {"top_p": float("nan")}, "top_p must lie in"),
        ("nsd", {"top_p": 0.9, "top_k": 3}, "unexpected keyword argument 'top_k'"),
        ("lenience", {"lenience": 0}, "lenience must lie in"),
        ("nonsense", {}, "choose one of standard"),
    ],
)
def test_bad_requests_are_usage_errors(name, settings, message):
    with pytest.raises(spec.UsageError, match=message):
        verifiers.get(name, **settings)


def test_large_vocabularies_need_a_closed_correction():
    class Slow:
        def acceptance(self, p, q):
            return p

        def residual(self, p, q, rejected):
            return p

    law = np.full(5000, 1 / 5000)
    with pytest.raises(spec.CostError, match="cap: V = 4096"):
        spec.exact.output_law(Slow(), law, law)
