"""Third-party verifiers through their adapters: what they answer, their injected coins, and the verdicts that the docs state.

The packages are dependencies of the development extra, so a missing one fails here rather than being skipped.
"""

from __future__ import annotations

import numpy as np
import pytest

from spectheory.audit import blackbox
from spectheory.audit.adapters import bridge
from spectheory.audit.blackbox.calls import call
from spectheory.audit.blackbox.contract import probe
from spectheory.audit.blackbox.edges import edges
from spectheory.audit.blackbox.interface import load
from spectheory.audit.blackbox.plan import scenarios, trial
from spectheory.audit.blackbox.scenario import sample
from spectheory.errors import UsageError
from spectheory.montecarlo.multinomial import deviation_interval
from spectheory.protocols import Coins

HERE = "spectheory.audit.adapters."
LOSSLESS = [
    "transformers:speculative_sampling",
    "flashspec:rejection",
    "flashspec:one_hot",
    "economize:rejection",
    "economize:rejection_single",
]
LOSSY = [
    "transformers:ensemble",
    "flashspec:typical",
    "economize:typical",
    "economize:accept_all",
    "rotalabs_accel:rejection_sample",
]
SINGLE = 1500  # draws of an adapter that takes one block at a time


def measure(name, scenario, n):
    subject = load(HERE + name)
    tally = sample(subject, scenario, n, np.random.default_rng(1), lambda: None)
    return deviation_interval(tally.counts, scenario.law(), 1e-9).interval


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_adapters(name):
    """Well-formed, reproducible, and not rejected on a step and on a block with context (false alarm 1e-9 each)."""
    subject = load(HERE + name)
    probe(subject, 0, lambda: None)
    n = 20_000 if subject.batched else SINGLE
    for scenario in (scenarios()[0], scenarios()[6]):
        interval = measure(name, scenario, n)
        assert interval.lower == 0
        assert interval.upper < (0.09 if subject.batched else 0.4)


@pytest.mark.parametrize("name", LOSSY)
def test_lossy_adapters_are_rejected(name):
    """3,000 seeded draws: a lossless adapter would be called lossy with probability at most 1e-9; the miss rate is not designed."""
    assert measure(name, scenarios()[0], 3000).lower > 0


def test_transformers_ensemble_has_the_law_of_its_paper():
    """TV = (1 - w) TV(p, q) = .25 on C4 at w = 1/2 (false alarm 1e-9)."""
    interval = measure("transformers:ensemble", scenarios()[0], SINGLE)
    assert 0.25 in interval


def test_rotalabs_residual_is_named():
    """Its documented-as-exact step subtracts q at the drafted token only: the exact law of M4, TV .081944 on C4.

    The interval misses with probability at most 1e-6, the rejection, designed for .08, with at most 1e-4.
    """
    scenario = scenarios()[0]
    planned = trial(scenario, 0.08, 1e-6, 1e-4)
    tally = sample(
        load(HERE + "rotalabs_accel:rejection_sample"),
        scenario,
        planned.design.n,
        np.random.default_rng(2),
        lambda: None,
    )
    found = deviation_interval(tally.counts, scenario.law(), 1e-6, planned.design.method)
    assert found.rejected
    assert 0.081944 in found.interval
    from spectheory.audit.blackbox.faults import name_faults

    named = [f.fault for f in name_faults([planned], {scenario.name: tally.counts})]
    assert "residual subtracts q only at the drafted token" in named


def test_rotalabs_bonus_token_minimal_example():
    """`verify_tokens` hands top_p over as top_k: after a fully accepted block top_p = 1.0 raises, 0.9 takes the argmax."""
    import torch
    from rotalabs_accel.speculative.core import verify_tokens

    law = torch.tensor([0.4, 0.3, 0.3])

    class Target:
        def __call__(self, input_ids, **cache):
            return type("Out", (), {"logits": law.log().expand(1, 2, 3), "past_key_values": None})

    def verify(top_p):
        drafted = torch.tensor([0])
        return verify_tokens(Target(), torch.tensor([[0]]), drafted, law[drafted], None, temperature=1.0, top_p=top_p)

    with pytest.raises(TypeError, match="must be int, not float"):
        verify(1.0)
    torch.manual_seed(0)
    bonus = [int(verify(0.9)[0][-1]) for _ in range(200) if verify(0.9)[1] == 1]
    assert set(bonus) == {0}  # a sample would hold the others too, up to (0.4)^100


def test_capped_hsd_is_exact_in_a_step_and_wrong_in_a_block():
    """Its ratio leaves out the last draft, which one draft a block hides (false alarm 1e-9 each)."""
    assert measure("seqspecdecod:capped_hsd", scenarios()[0], SINGLE).lower == 0
    assert measure("seqspecdecod:standard", scenarios()[4], SINGLE).lower == 0
    assert measure("seqspecdecod:capped_hsd", scenarios()[4], SINGLE).lower > 0.2


def test_rotalabs_raises_in_the_audit():
    report = blackbox.audit(load(HERE + "rotalabs_accel:verify_tokens_unfiltered"), blackbox.Request(0.2))
    assert report.verdict == "broken contract: raises"
    assert report.verifier["packages"]["rotalabs-accel"] == "1.1.1"
    assert "TypeError" in report.summary["broken"]["detail"]


def test_transformers_accepts_a_zero_probability_token_at_coin_zero():
    """Its test is r <= p/q, and torch.rand returns exactly 0 with probability 2^-24."""
    found = {e.name: e.status for e in edges(load(HERE + "transformers:speculative_sampling"), lambda: None)}
    assert found["coin 0, p(x) = 0"] == "finding"
    for name in ("flashspec:rejection", "economize:rejection"):
        strict = {e.name: e.status for e in edges(load(HERE + name), lambda: None)}
        assert strict["coin 0, p(x) = 0"] == "ok", name
        assert strict["coin 1 - ulp, p = q"] == "ok", name


def test_what_the_packages_take_silently():
    """As the how-to page states it."""
    taken = {
        "transformers:speculative_sampling": {"q(x) = 0 at a drafted token", "a drafted id of -1"},
        "flashspec:rejection": {"q(x) = 0 at a drafted token", "a NaN in q"},
        "economize:rejection": {"q(x) = 0 at a drafted token", "a NaN in q", "a drafted id of -1"},
        "rotalabs_accel:rejection_sample": {"q(x) = 0 at a drafted token", "a NaN in q", "a drafted id of -1"},
    }
    for name, expected in taken.items():
        found = {e.name for e in edges(load(HERE + name), lambda: None) if e.detail.startswith("taken silently")}
        assert found == expected, name


def test_batched_and_single_paths_of_economize_agree_on_their_coins():
    p, q = np.array([[(0.4, 0.2, 0.3, 0.1)] * 2]), np.array([[(0.1, 0.5, 0.1, 0.3)]])
    for u in (0.0, 0.39, 0.41, 0.999):
        kept = []
        for name in ("economize:rejection", "economize:rejection_single"):
            subject = load(HERE + name)
            shape = (1, 1) if subject.batched else (1,)
            answers = call(subject, np.array([[1]]), q, p, Coins(np.full(shape, u), np.full(shape, 0.5)), lambda: None)
            kept.append(int(answers.accepted[0]))
        assert kept[0] == kept[1] == int(u < 0.4)


def test_a_missing_package_is_a_usage_error():
    with pytest.raises(UsageError, match="needs the package no_such_engine"):
        bridge.package("no_such_engine.sampling")


def test_versions_are_recorded():
    for name in LOSSLESS + LOSSY:
        versions = load(HERE + name).versions()
        assert "torch" in versions
        assert len(versions) == 2
