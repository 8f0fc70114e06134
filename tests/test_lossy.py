"""The lossy rules: values on the canonical pair, their limits, and where they lie on the plane."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectheory as spec
from spectheory import UsageError, pmf, verifiers
from spectheory.exact import acceptance_rate, output_law, step_deviation
from spectheory.testing import rational_pairs
from spectheory.theory import lossy
from spectheory.verifiers.cactus import Cactus, bent
from spectheory.verifiers.mentored import Mentored, inverse_beta
from spectheory.verifiers.typical import Typical, threshold

C4 = tuple(np.array([F(x, 10) for x in law], dtype=object) for law in ((4, 2, 3, 1), (1, 5, 1, 3)))
TARGET = {"epsilon": 1, "delta": F(1, 2), "correction_law": "target"}
LOSSY = ["ensemble", "slack", "mentored", "typical", "fuzzy", "thresholds", "cactus", "constant"]
ON_THE_LINE = ["ensemble", "slack", "mentored", "cactus", "lenience", "nsd"]


def rule(name, **settings):
    return verifiers.get(name, **settings)


# Degenerate first.


@pytest.mark.parametrize("name", LOSSY)
def test_equal_laws_are_kept(name):
    """p = q: every rule but those that replace what they reject by something else emits p."""
    p = np.array([0.6, 0.3, 0.1])
    law = output_law(verifiers.example(name), p, p)
    if name in ("typical", "thresholds"):
        assert law.sum() == pytest.approx(1)
    else:
        assert law == pytest.approx(p)


@pytest.mark.parametrize(
    ("name", "settings", "limit"),
    [
        ("ensemble", {"weight": 1}, "standard"),
        ("slack", {"tolerance": 0}, "standard"),
        ("mentored", {"alpha": 1}, "standard"),
        ("cactus", {"budget": 0}, "standard"),
        ("thresholds", {}, "sample-and-match"),
    ],
)
@given(pair=rational_pairs())
def test_lossless_limits(name, settings, limit, pair):
    ours, exact = rule(name, **settings), verifiers.get(limit)
    assert np.asarray(output_law(ours, *pair), float) == pytest.approx(np.asarray(pair[0], float), abs=1e-12)
    assert float(acceptance_rate(ours, *pair)) == pytest.approx(float(acceptance_rate(exact, *pair)), abs=1e-12)


@given(pair=rational_pairs())
def test_draft_limits(pair):
    p, q = pair
    for ours in (
        rule("ensemble", weight=0),
        rule("constant", rate=1),
        rule("fuzzy", threshold=1),
        rule("typical", epsilon=0, delta=0),
    ):
        kept = (ours.acceptance(p, q) == 1) | (q == 0)
        if kept.all():  # typical drops what the target excludes
            assert (output_law(ours, p, q) == q).all()


# Values on C4, by hand.


@pytest.mark.parametrize(
    ("name", "settings", "law", "accept"),
    [
        # w = 1/2: the mean of p and q
        ("ensemble", {"weight": F(1, 2)}, (F(1, 4), F(7, 20), F(1, 5), F(1, 5)), F(3, 4)),
        # specimen M12: slack .3 (1 - .4) = .18
        ("slack", {"tolerance": F(3, 10)}, (F(3136, 10**4), F(29, 100), F(2424, 10**4), F(154, 1000)), F(644, 1000)),
        # alpha 1/2: q A = (.1, .4, .1, .2), .2 rejected; (.4 t - .1) + (.3 t - .1) = .2 at t = 4/7
        ("mentored", {"alpha": F(1, 2)}, (F(8, 35), F(2, 5), F(6, 35), F(1, 5)), F(4, 5)),
        # specimen M15: threshold .1390, {0, 1, 2} accepted, .3 goes to the argmax
        ("typical", {"epsilon": 1, "delta": F(1, 2)}, (F(2, 5), F(1, 2), F(1, 10), F(0)), F(7, 10)),
        ("typical", TARGET, (F(22, 100), F(56, 100), F(19, 100), F(3, 100)), F(7, 10)),
        # TV(p, q) = 1/2
        ("fuzzy", {"threshold": F(1, 2)}, (F(1, 10), F(1, 2), F(1, 10), F(3, 10)), 1),
        ("fuzzy", {"threshold": F(49, 100)}, (F(2, 5), F(1, 5), F(3, 10), F(1, 10)), 0),
        ("constant", {"rate": F(1, 2)}, (F(7, 20), F(1, 4), F(1, 4), F(3, 20)), F(1, 2)),
    ],
)  # fmt: skip
def test_canonical_pair(name, settings, law, accept):
    ours = rule(name, **settings)
    assert list(output_law(ours, *C4)) == list(law)
    assert acceptance_rate(ours, *C4) == accept


def test_specimen_figures():
    """M12 and M15 of the case file."""
    assert step_deviation(rule("slack", tolerance=F(3, 10)), *C4) == F(144, 1000)
    assert step_deviation(rule("typical", epsilon=1, delta=F(1, 2)), *C4) == F(3, 10)
    assert threshold(C4[0].astype(float), 1, 0.5)[0] == pytest.approx(0.1390, abs=5e-5)


def test_thresholds_by_hand():
    """One draft of p(x) = .3: acc .5 accepts .6, the rest goes to p without x in proportion; single .25 accepts it outright."""
    p, q = C4[0], np.array([F(0), F(0), F(1), F(0)], dtype=object)
    assert list(output_law(rule("thresholds", acc=F(1, 2)), p, q)) == [F(16, 70), F(8, 70), F(3, 5), F(4, 70)]
    assert list(output_law(rule("thresholds", single=F(1, 4)), p, q)) == [0, 0, 1, 0]


def test_cactus_by_hand():
    """p = (1/2, 1/2), q = (0, 1), d = 1/8: h = 1/2 + sqrt(1/16) = 3/4, the rest to the other token."""
    p, q = np.array([0.5, 0.5]), np.array([0.0, 1.0])
    assert bent(p, 0.125) == pytest.approx([0.75, 0.75])
    assert output_law(Cactus(0.125), p, q) == pytest.approx([0.25, 0.75])


# The plane.


@pytest.mark.parametrize("name", ON_THE_LINE)
@given(pair=rational_pairs())
def test_over_accepting_rules_lie_on_the_line(name, pair):
    ours = verifiers.example(name)
    total = float(1 - acceptance_rate(ours, *pair) + step_deviation(ours, *pair))
    assert total == pytest.approx(float(pmf.total_variation(*pair)), abs=1e-12)


@pytest.mark.parametrize("name", ["typical", "fuzzy", "thresholds", "constant", "resample-target", "sample-and-match"])
def test_the_others_lie_off_the_line_on_c4(name):
    p, q = (x.astype(float) for x in C4)
    settings = {"typical": {"epsilon": 1, "delta": 0.5}, "fuzzy": {"threshold": 0.4}}.get(name)
    ours = rule(name, **settings) if settings else verifiers.example(name)
    assert 1 - acceptance_rate(ours, p, q) + step_deviation(ours, p, q) > 0.5 + 0.01


@pytest.mark.parametrize("name", [n for n in verifiers.names() if hasattr(verifiers.rule_class(n), "SWEEP")])
def test_sweeps_are_legal_and_ordered(name):
    """Each value makes a rule, and the parameter moves acceptance one way on a generic pair."""
    parameter, swept = verifiers.rule_class(name).SWEEP
    p, q = spec.models.synthetic_pairs("dirichlet-1", 6, 40)
    settings = dict(verifiers.RULES[name][2])
    rates = [float(np.mean(acceptance_rate(rule(name, **{**settings, parameter: v}), p, q))) for v in swept]
    steps = np.diff(rates)
    assert (steps >= -1e-12).all() or (steps <= 1e-12).all()


# Fast against slow.


@given(pair=rational_pairs(), alpha=st.fractions(0, 1, max_denominator=12).filter(bool))
def test_inverse_beta_solves_its_equation(pair, alpha):
    p, q = pair
    mass = np.array([sum(max(y - x / alpha, 0) for x, y in zip(p, q))], dtype=object)
    t = inverse_beta(p, q, mass)[0]
    assert 0 <= t <= 1
    assert sum(max(t * x - y, 0) for x, y in zip(p, q)) == mass[0]


def test_mentored_is_the_optimum_on_a_grid():
    """Of all emitted laws on a grid of 1/400 within the same KL(p || emitted), none accepts more; the best comes close."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    ours = Mentored(0.6)
    budget = pmf.kl(p, output_law(ours, p, q))
    i, j = (x.ravel() for x in np.meshgrid(np.arange(1, 400), np.arange(1, 400)))
    laws = np.stack([i, j, 400 - i - j], -1)[i + j < 400] / 400
    allowed = laws[pmf.kl(p, laws) <= budget]
    best = np.minimum(allowed, q).sum(-1).max()
    assert best <= acceptance_rate(ours, p, q) + 1e-12
    assert best >= acceptance_rate(ours, p, q) - 0.005


def test_cactus_correction_by_its_definition_at_size():
    """O(V log V) against one residual a rejected token, V = 400."""
    rng = np.random.default_rng(0)
    p, q = pmf.softmax(rng.normal(size=(2, 400)) * 2)
    ours = Cactus(0.02)
    slow = np.zeros(400)
    for x, weight in enumerate(q * (1 - ours.acceptance(p, q))):
        if weight > 0:
            slow += weight * ours.residual(p, q, x)
    assert ours.correction(p, q) == pytest.approx(slow, abs=1e-13)


def test_cactus_breaks_its_budget_on_the_emitted_law():
    """The registered counterexample: chi2(emitted || p) = 3/25 at a budget of 2 d = 1/25."""
    p, q = np.array([0.25, 0.25, 0.5]), np.array([0.5, 0.5, 0.0])
    law = output_law(Cactus(0.02), p, q)
    assert pmf.chi_square(law, p) == pytest.approx(3 / 25)
    assert pmf.chi_square(law, p) <= lossy.cactus_chi2_bound(p, q, 0.02)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("ensemble", {"weight": 1.5}, "weight must lie in"),
        ("slack", {"tolerance": -1}, "tolerance must lie in"),
        ("mentored", {"alpha": 0}, "alpha must lie in"),
        ("typical", {"epsilon": 2}, "epsilon must lie in"),
        ("typical", {"correction_law": "best"}, "correction_law must be"),
        ("fuzzy", {"threshold": float("nan")}, "threshold must be"),
        ("fuzzy", {"threshold": 1, "divergence": "l2"}, "divergence must be one of tv, kl, js"),
        ("thresholds", {"acc": 0}, "single and acc must lie in"),
        ("cactus", {"budget": -1}, "budget must be"),
        ("constant", {"rate": float("nan")}, "rate must lie in"),
    ],
)
def test_settings_out_of_range(name, settings, message):
    with pytest.raises(UsageError, match=message):
        rule(name, **settings)


def test_typical_is_a_threshold_on_the_target_alone():
    p = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3]])
    limits = [min(0.09, 0.3 * np.exp((row * np.log(row)).sum())) for row in p]
    accept = Typical().acceptance(p, np.full((2, 3), 1 / 3))
    assert (accept == (p > np.array(limits)[:, None])).all()
