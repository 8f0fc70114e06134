"""The unbiased sequence estimate and its confidence sequence: coverage, agreement with the exact engine, resuming."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from spectheory import exact, models
from spectheory.errors import DataError, UsageError
from spectheory.montecarlo.estimate import estimate_sequence, sample_values
from spectheory.montecarlo.sequences import confidence_sequence
from spectheory.testing import TableRule
from spectheory.verifiers import Nucleus, Standard
from spectheory.verifiers.block import BlockVerification

MARKOV = models.Tabular(
    [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]], [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]]
)
NSD = Nucleus(0.8)
FALSE_ALARM = 1e-9


def test_degenerate_samples():
    assert confidence_sequence([], 0.05).upper == 1
    assert confidence_sequence(np.zeros(500), 0.05).lower == 0
    assert confidence_sequence(np.zeros(500), 0.05).upper < 0.02
    assert confidence_sequence(np.ones(500), 0.05).lower > 0.98
    with pytest.raises(DataError, match=r"in \[0, 1\]"):
        confidence_sequence([0.5, 1.5], 0.05)
    with pytest.raises(DataError, match=r"in \[0, 1\]"):
        confidence_sequence([np.nan], 0.05)


@pytest.mark.parametrize("draw", ["coin", "skewed", "uniform"])
def test_the_interval_covers_at_its_rate_at_every_stop(draw):
    """400 sequences; each may miss its mean at ANY n with probability at most alpha = .1: at most binomially many do.

    False alarm 1e-9 a case.
    """
    rng, alpha, runs = np.random.default_rng(7), 0.1, 400
    missed = 0
    for _ in range(runs):
        if draw == "coin":
            x, mean = (rng.random(150) < 0.2).astype(float), 0.2
        elif draw == "skewed":
            x, mean = rng.beta(0.2, 1.8, 150), 0.1
        else:
            x, mean = rng.random(150), 0.5
        found = confidence_sequence(x, alpha)  # holds the intersection over all n: a miss at any n is a miss at the end
        missed += not found.lower <= mean <= found.upper
    assert missed <= binom.isf(FALSE_ALARM, runs, alpha)


def test_intervals_only_shrink_as_data_arrive():
    x = np.random.default_rng(0).beta(1, 4, 300)
    steps = [confidence_sequence(x[:n], 0.05) for n in (10, 50, 300)]
    assert steps[0].lower <= steps[1].lower <= steps[2].lower
    assert steps[0].upper >= steps[1].upper >= steps[2].upper


@pytest.mark.parametrize("rule", [NSD, Standard()])
def test_both_laws_agree_with_the_exact_deviation(rule):
    """False alarm 1e-9 for all horizons and sides at once."""
    horizons = [1, 2, 4, 6]
    found = estimate_sequence(
        rule, MARKOV, horizons=horizons, block_size=2, paths=6000, batch=2000, alpha=FALSE_ALARM, seed=1
    )
    for i, t in enumerate(horizons):
        true = exact.sequence_deviation(rule, MARKOV, length=t, block_size=2)
        for side in (found.engine, found.target, found.deviation):
            assert side[i].lower - 1e-12 <= true <= side[i].upper + 1e-12
    assert all(a.lower <= b.lower for a, b in zip(found.deviation, found.deviation[1:], strict=False))


def test_mass_outside_the_other_law_counts_in_full():
    """P~ never shows token 0, P never shows token 2: both sides still estimate the same number. False alarm 1e-9."""
    rule = TableRule(np.ones((1, 3)), np.array([[0.0, 0.5, 0.5]]))
    model = models.Tabular([[0.5, 0.5, 0.0]], [[0.0, 0.5, 0.5]])
    true = exact.sequence_deviation(rule, model, length=3, block_size=5)
    found = estimate_sequence(rule, model, horizons=[3], block_size=5, paths=4000, batch=4000, alpha=FALSE_ALARM)
    for side in (found.engine[0], found.target[0]):
        assert side.lower <= true <= side.upper


def test_any_model_gives_what_its_table_gives():
    """False alarm 1e-9."""

    class Stranger:
        vocab_size = 3

        def laws(self, prefixes):
            return MARKOV.laws(prefixes)

    true = exact.sequence_deviation(NSD, MARKOV, length=3, block_size=1)
    for side in ("engine", "target"):
        values = sample_values(NSD, Stranger(), [3], 1, 4000, np.random.default_rng(3), side)[:, 0]
        found = confidence_sequence(values, FALSE_ALARM)
        assert found.lower <= true <= found.upper


def test_early_stop_and_progress():
    seen = []
    found = estimate_sequence(
        NSD,
        MARKOV,
        horizons=[1],
        block_size=2,
        paths=50_000,
        half_width=0.05,
        batch=500,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert (found.deviation[0].upper - found.deviation[0].lower) / 2 <= 0.05
    assert seen[0] == (0, 50_000)
    assert seen[-1][0] < 5000


def test_a_killed_run_goes_on_from_its_store(tmp_path):
    store = tmp_path / "out" / "paths.npz"
    request = {"horizons": [1, 3], "block_size": 2, "batch": 100}
    estimate_sequence(NSD, MARKOV, paths=200, store=store, **request)
    resumed = estimate_sequence(NSD, MARKOV, paths=300, store=store, **request)
    whole = estimate_sequence(NSD, MARKOV, paths=300, **request)
    for side in ("engine", "target"):
        assert np.array_equal(resumed.values[side], whole.values[side])
    with pytest.raises(DataError, match="another request"):
        estimate_sequence(Standard(), MARKOV, paths=300, store=store, **request)
    assert list(store.parent.iterdir()) == [store]


@pytest.mark.parametrize("bad", [{"horizons": []}, {"horizons": [0]}, {"block_size": 0}, {"paths": 0}, {"alpha": 1.0}])
def test_bad_requests(bad):
    with pytest.raises(UsageError):
        estimate_sequence(NSD, MARKOV, **{"horizons": [1], "block_size": 1, **bad})


def test_rules_that_decide_by_blocks_are_refused():
    with pytest.raises(UsageError, match="decides by blocks"):
        estimate_sequence(BlockVerification(), MARKOV, horizons=[1], block_size=1)


def test_rows_that_are_not_laws_are_named():
    class Broken:
        vocab_size = 2

        def laws(self, prefixes):
            return np.full((len(prefixes), 2), 0.6), np.full((len(prefixes), 2), 0.5)

    with pytest.raises(DataError, match=r"p row 0 sums to 1\.2"):
        estimate_sequence(NSD, Broken(), horizons=[1], block_size=1, paths=4)
