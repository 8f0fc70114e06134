"""Each specimen's exact law is its row of the table collected from public bug reports, to the table's six digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import reference

import spectheory as spec
from spectheory.montecarlo import simulate_steps
from spectheory.pmf import race_agreement, race_joint
from spectheory.testing import assert_law, assert_rate
from spectheory.verifiers.broken import specimens

# id: output law, TV to the intended target, acceptance
TABLE = {
    "G0": ([0.4, 0.2, 0.3, 0.1], 0, 0.5),
    "G1": ([0.4, 0.2, 0.3, 0.1], 0, 0.2),
    "G3": ([0.4, 0.2, 0.3, 0.1], 0, 0.492853),
    "M1": ([0.1, 0.5, 0.1, 0.3], 0.5, 1),
    "M2": ([0.3, 0.3, 0.25, 0.15], 0.15, 0.5),
    "M3": ([0.247646, 0.309379, 0.233596, 0.209379], 0.218758, 0.5),
    "M4": ([0.338889, 0.244444, 0.279167, 0.1375], 0.081944, 0.5),
    "M5": ([0.28, 0.2, 0.42, 0.1], 0.12, 0.5),
    "M6": ([0.409524, 0.2, 0.290476, 0.1], 0.009524, 0.5),
    "M7": ([0.36, 0.4, 0.24, 0], 0.2, 0.4),
    "M11": ([0.3, 0.35, 0.225, 0.125], 0.175, 0.5),
    "M12": ([0.3136, 0.29, 0.2424, 0.154], 0.144, 0.644),
    "M13": ([0.22, 0.4, 0.18, 0.2], 0.3, 0.8),
    "M15": ([0.4, 0.5, 0.1, 0], 0.3, 0.7),
    "M18": ([1, 0, 0, 0], 0.6, None),
    "M19": ([0.440476, 0.128571, 0.3375, 0.093452], 0.077976, 0),
    "M22": ([0.6, 0.2, 0.1, 0.1], 0.2, 0.5),
    "D1": ([0.533333, 0.4, 0.066667, 0], 0.233333, None),
    "D2": ([0.857143, 0.142857], 0.257143, None),
    "D3": (None, 0.006091, None),
    "T1": ([0.5, 0.3, 0.2], 0.2, None),
    "T2": ([0.6, 0.3, 0.06, 0.04], 0.1, None),
    "T3": (None, 0.058824, None),
}
SPECIMENS = specimens()


def test_every_specimen_has_its_row():
    assert set(SPECIMENS) == set(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_exact_law_is_the_table_row(name):
    specimen, (law, deviation, acceptance) = SPECIMENS[name], TABLE[name]
    step = spec.exact.step(specimen.rule, specimen.p, specimen.q)
    if law is not None:
        assert step.output == pytest.approx(law, abs=5.1e-7)
    assert step.deviation == pytest.approx(deviation, abs=5.1e-7)
    if acceptance is not None:
        assert step.acceptance_rate == pytest.approx(acceptance, abs=5.1e-7)
    assert specimen.lossless == (step.deviation < 1e-12)


@pytest.mark.parametrize("name", TABLE)
def test_simulation_follows_the_exact_law(name):
    """Two asserts at a false-alarm rate of 1e-9 each; 200,000 draws detect 0.02 in TV with the same miss rate."""
    specimen, n = SPECIMENS[name], 200_000
    p, q = np.array(specimen.p), np.array(specimen.q)
    sample = simulate_steps(specimen.rule, p, q, n, seed=3)
    step = spec.exact.step(specimen.rule, p, q)
    assert_law(sample.emitted[:, 0], np.maximum(step.output, 0))
    assert_rate(int(sample.accepted.sum()), n, float(step.acceptance_rate))


@pytest.mark.parametrize("name", [k for k, s in SPECIMENS.items() if getattr(s.rule, "joint", None) is None])
def test_exact_law_is_its_definition(name):
    """Without shared randomness the law is the sum over drafts, term by term (with the law really drafted from)."""
    specimen = SPECIMENS[name]
    p, q = np.array(specimen.p), np.array(specimen.q)
    expected = reference.output_law(specimen.rule, p, q)
    assert spec.exact.output_law(specimen.rule, p, q) == pytest.approx(expected, abs=1e-14)


def test_reused_uniform_by_a_grid():
    """M5 by brute force: walk the uniform over a fine midpoint grid, accept or invert the residual's CDF with it."""
    p, q = np.array(SPECIMENS["M5"].p), np.array(SPECIMENS["M5"].q)
    a, cdf, cells = SPECIMENS["M5"].rule.acceptance(p, q), np.cumsum(SPECIMENS["M5"].rule.residual(p, q)), 10_000
    u = (np.arange(cells) + 0.5) / cells
    law = np.zeros(4)
    for x in range(4):
        emitted = np.where(u < a[x], x, np.searchsorted(cdf, u, side="right"))
        law += q[x] * np.bincount(emitted, minlength=4) / cells
    assert spec.exact.output_law(SPECIMENS["M5"].rule, p, q) == pytest.approx(law, abs=2e-4)


def test_shared_races_agree_with_simulated_races():
    """joint law of two races on one noise, exactly rational, against simulation (false alarm 1e-9, detects 0.02 in TV)."""
    p = np.array([Fraction(2, 5), Fraction(1, 5), Fraction(3, 10), Fraction(1, 10)], dtype=object)
    q = np.array([Fraction(1, 10), Fraction(1, 2), Fraction(0), Fraction(2, 5)], dtype=object)
    joint = race_joint(p, q)
    assert (joint.sum(axis=0) == p).all()
    assert (joint.sum(axis=1) == q).all()
    assert (np.diag(joint) == race_agreement(p, q)).all()
    noise = np.random.default_rng(0).exponential(size=(400_000, 4))
    with np.errstate(divide="ignore"):
        drafted, emitted = (noise / q.astype(float)).argmin(1), (noise / p.astype(float)).argmin(1)
    assert_law(4 * drafted + emitted, joint.astype(float).ravel())
