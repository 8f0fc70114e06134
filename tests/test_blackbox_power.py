"""The audit's operating characteristic: every specimen is rejected at its designed size, no lossless one beyond its rate."""

from __future__ import annotations

import numpy as np
import pytest

from spectheory.audit.blackbox.characteristic import operating_characteristic
from spectheory.audit.blackbox.faults import candidates, law_under, name_faults
from spectheory.audit.blackbox.plan import scenarios, trial
from spectheory.audit.blackbox.scenario import sample
from spectheory.audit.blackbox.specimens import known
from spectheory.montecarlo import clopper_pearson
from spectheory.montecarlo.multinomial import deviation_interval
from spectheory.testing import assert_law
from spectheory.verifiers import broken

ALPHA, MISS = 1e-3, 1e-4
KNOWN = known()
BROKEN = [name for name, case in KNOWN.items() if not case.lossless]
LOSSLESS_RULES = {f"the lossy rule {name}" for name in ("standard", "sample-and-match", "ersd")}
LOSSLESS = [name for name, case in KNOWN.items() if case.lossless]


def planned(case):
    null, law = case.scenario.law(), law_under(case.rule, case.scenario)
    tv = 0.5 * float(abs(null - law).sum())
    return tv, trial(case.scenario, 0.05 if case.lossless else tv, ALPHA, MISS)


def test_every_specimen_of_the_table_is_audited():
    assert set(broken.specimens()) <= set(KNOWN)
    assert {"G0", "G1", "G3", "B0", "B1"} == set(LOSSLESS)
    assert {"J1", "J2", "J3", "C1"} <= set(BROKEN)


def test_operating_characteristic_at_the_designed_size():
    """1,000 audits of each specimen, simulated as multinomials from its exact law.

    Seeded. False alarm 1e-9 a lossless specimen; a broken one missed at exactly its rate of 1e-4 would fail 998 of 1,000 with
    probability 1.6e-4.
    """
    data = operating_characteristic(runs=1000, alpha=ALPHA, miss=MISS, fractions=(1.0,))
    for row in data["specimens"]:
        rejected = row["points"][-1]["rejected"]
        if row["lossless"]:
            assert clopper_pearson(rejected, 1000, 1e-9).lower <= ALPHA, row["id"]
        else:
            assert rejected >= 998, row["id"]


@pytest.mark.parametrize("name", ["J1", "J2", "C1"])
def test_joint_deviations_are_those_of_the_table(name):
    assert planned(KNOWN[name])[0] == pytest.approx({"J1": 0.075, "J2": 0.156, "C1": 0.16}[name], abs=1e-9)


def reject_real(name, runs):
    """How many of `runs` audits of the real callable at its designed size reject."""
    case, found = KNOWN[name], 0
    plan = planned(case)[1]
    for seed in range(runs):
        tally = sample(case.subject, case.scenario, plan.design.n, np.random.default_rng([seed, 1]), lambda: None)
        found += deviation_interval(tally.counts, case.scenario.law(), ALPHA, plan.design.method).rejected
    return found


@pytest.mark.parametrize("name", BROKEN)
def test_the_real_callable_is_rejected(name):
    """More than 50 audits in all, five of each in the full suite; a miss has probability 1e-4 each by design."""
    runs = 1 if not KNOWN[name].subject.batched else 2 if name in ("D3", "M6") else 3
    assert reject_real(name, runs) == runs


@pytest.mark.full
@pytest.mark.parametrize("name", BROKEN)
def test_the_real_callable_is_rejected_five_times(name):
    """By design an audit misses with probability at most 1e-4."""
    assert reject_real(name, 5) == 5


@pytest.mark.parametrize("name", LOSSLESS)
def test_the_real_lossless_callable_is_not_rejected(name):
    """False alarm 1e-9 each; TV of 0.05 (block verification, which is slow: 0.2) would be found but for 1e-4."""
    case = KNOWN[name]
    plan = trial(case.scenario, 0.2 if name == "B0" else 0.05, 1e-9, MISS)
    tally = sample(case.subject, case.scenario, plan.design.n, np.random.default_rng(9), lambda: None)
    assert not deviation_interval(tally.counts, case.scenario.law(), 1e-9, plan.design.method).rejected


@pytest.mark.parametrize("name", [n for n in KNOWN if n not in ("D3", "M6")])
def test_callables_follow_the_exact_law_of_their_rule(name):
    """False alarm 1e-9 each; 2,000 draws. (The two whose deviation is below 0.01 are judged at their designed size.)"""
    case = KNOWN[name]
    tally = sample(case.subject, case.scenario, 2000, np.random.default_rng(5), lambda: None)
    law = law_under(case.rule, case.scenario)
    assert_law(np.repeat(np.arange(len(law)), tally.counts), np.maximum(law, 0))


def test_the_named_fault_class_is_right():
    """Counts of every test of an audit, drawn from a fault's exact laws, name that fault; far more than 12 of them.

    Seeded; a test rejects a law that it was drawn from with probability at most 1e-4.
    """
    trials = [trial(s, 0.05, 1e-4, 1e-4) for s in scenarios(drafts=True)]
    right = []
    for i, (fault, rule) in enumerate(candidates()):
        rng, counts = np.random.default_rng([i, 3]), {}
        for t in trials:
            law = law_under(rule, t.scenario)
            if law is not None:
                counts[t.scenario.name] = rng.multinomial(t.design.n, law / law.sum())
        named = name_faults(trials, counts)
        if fault in [f.fault for f in named if f.behind < 1e-6]:  # two rules may have one law: mentored and lenience
            right.append(fault)
    assert len(right) >= 12
    missed = {fault for fault, _ in candidates()} - set(right)
    assert "draft race noise reused in the residual draw" in missed  # TV .0095 on C4: below what these sizes can see
    assert missed <= {"draft race noise reused in the residual draw", *LOSSLESS_RULES}


def test_a_lossless_verifier_is_given_no_fault():
    """False alarm 1e-9 a test of the audit."""
    trials = [trial(s, 0.1, 1e-9, 1e-4) for s in scenarios()]
    rng = np.random.default_rng(0)
    counts = {t.scenario.name: rng.multinomial(t.design.n, t.scenario.law()) for t in trials}
    assert name_faults(trials, counts) == []


def test_two_faults_at_once_are_named_by_their_steps():
    """A step fault with a stale bonus on top fits no single law on blocks; the steps still give the first one away.

    Seeded; both error rates of each test are 1e-4.
    """
    trials = [trial(s, 0.05, 1e-4, 1e-4) for s in scenarios()]
    rules, rng, counts = dict(candidates()), np.random.default_rng(1), {}
    for t in trials:
        rule = rules["residual resampled from p" if t.scenario.length == 1 else "bonus drawn from the previous row"]
        law = law_under(rule, t.scenario)
        counts[t.scenario.name] = rng.multinomial(t.design.n, law / law.sum())
    assert name_faults(trials, counts)[0].fault == "residual resampled from p (and more in blocks)"


def test_a_fault_in_blocks_alone_is_not_explained_by_steps():
    """Exact steps and a wrong block: a rule whose block law is unknown must not be named for fitting the steps.

    Seeded; both error rates of each test are 1e-4.
    """
    trials = [trial(s, 0.05, 1e-4, 1e-4) for s in scenarios()]
    rng, counts = np.random.default_rng(4), {}
    for t in trials:
        law = t.scenario.law() if t.scenario.length == 1 else np.full(len(t.scenario.law()), 1 / len(t.scenario.law()))
        counts[t.scenario.name] = rng.multinomial(t.design.n, law)
    assert name_faults(trials, counts) == []


def test_shared_randomness_has_no_block_law():
    scenario = next(s for s in scenarios() if s.name == "block of 2, C4")
    assert law_under(KNOWN["M5"].rule, scenario) is None
    assert law_under(KNOWN["M2"].rule, scenario).sum() == pytest.approx(1)


def test_figure_of_the_operating_characteristic(tmp_path):
    from spectheory.figures.blackbox import operating_characteristic as draw
    from spectheory.figures.style import save

    data = operating_characteristic(runs=20, fractions=(0.25, 1.0))
    paths = save(draw(data), tmp_path / "characteristic", data)
    assert {p.suffix for p in paths} == {".svg", ".pdf", ".json"}
    again = save(draw(data), tmp_path / "again", data)
    assert [p.read_bytes() for p in paths] == [p.read_bytes() for p in again]
