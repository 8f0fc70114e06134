"""The public test tools: strategies keep their promises, asserts keep their error rates, the search finds and shrinks."""

from __future__ import annotations

import contextlib
import io
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from spectheory import pmf, testing, verifiers
from spectheory.protocols import supports

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "search-for-counterexamples.md"


def is_law(p):
    exact = p.dtype == object
    total = p.sum(axis=-1)
    return p.min() >= 0 and bool(np.all(total == 1) if exact else np.allclose(total, 1, atol=1e-12))


def is_pair(pair):
    p, q = pair
    return p.shape == q.shape and is_law(p) and is_law(q)


def is_engine(i):
    rule, model, length, block_size = i
    shape = model.target.shape
    assert rule.acceptance(model.target, model.draft).shape == shape
    return is_pair((model.target, model.draft)) and length >= 1 and block_size >= 1


def is_block(block):
    p, q = np.asarray(block.p), np.asarray(block.q)
    drawn = q[np.arange(block.size), block.tokens]
    return p.shape == (block.size + 1, q.shape[1]) and is_law(p) and is_law(q) and (drawn > 0).all()


def is_regret_block(block):
    matches, regrets = block
    return all(r >= 0 and (r == 0 or not m) for m, r in zip(matches, regrets))


PROMISES = {
    "laws": (testing.laws(), is_law),
    "rational_laws": (testing.rational_laws(), is_law),
    "pairs": (testing.pairs(), is_pair),
    "rational_pairs": (testing.rational_pairs(), is_pair),
    "nuclei": (testing.nuclei(), lambda i: is_pair(i[:2]) and 0 <= i[2] <= 1),
    "top_ps": (testing.top_ps(), lambda t: 0 <= t <= 1),
    "tabulars": (testing.tabulars(), lambda m: is_pair((m.target, m.draft)) and 0 <= m.initial < len(m.target)),
    "tabular_pairs": (testing.tabular_pairs(), lambda m: is_pair((m.target, m.draft)) and m.target.min() > 0),
    "engines": (testing.engines(), is_engine),
    "blocks": (testing.blocks(), is_block),
    "greedy_blocks": (testing.greedy_blocks(), lambda b: (np.asarray(b.logits).max(axis=1) > -np.inf).all()),
    "regret_blocks": (testing.regret_blocks(), is_regret_block),
    "regret_requests": (testing.regret_requests(), lambda r: all(map(is_regret_block, r.blocks))),
    "regret_traces": (testing.regret_traces(), lambda t: is_regret_block(t[:2]) and t[2] >= 1),
    "regret_positions": (testing.regret_positions(), lambda x: 0 <= x.match <= 1 and sum(x.regrets.values()) == 1),
    "race_pairs": (testing.race_pairs(), lambda i: is_pair(i) and i[1].min() > 0),
    "skewed_pairs": (testing.skewed_pairs(), lambda i: is_pair(i) and i[1].min() > 0),
    "lists": (testing.lists(), lambda i: is_pair(i[:2]) and i[2] >= 1),
    "rank_laws": (testing.rank_laws(), is_law),
    "budgets": (testing.budgets(), lambda i: is_law(i[0]) and i[1] >= 0),
    "path_laws": (testing.path_laws(), lambda i: is_law(i[0])),
    "calibrated": (testing.calibrated(), lambda i: is_law(i[0]) and is_law(i[1]) and len(i[0]) == len(i[1])),
}


@pytest.mark.parametrize("name", PROMISES)
def test_strategies_satisfy_their_hypotheses_by_construction(name):
    strategy, promise = PROMISES[name]

    @settings(max_examples=60)
    @given(strategy)
    def kept(value):
        assert promise(value)

    kept()


def test_exact_strategies_are_in_fractions():
    @settings(max_examples=30)
    @given(testing.nuclei())
    def exact(i):
        assert all(isinstance(x, Fraction) for x in (*i[0], *i[1], Fraction(i[2])))

    exact()


@pytest.mark.parametrize("name", ["disjoint", "equal", "one token", "ties"])
def test_degenerate_pairs_occur(name):
    absent = {
        "disjoint": lambda i: (i[0] * i[1]).sum() > 0,
        "equal": lambda i: len(i[0]) < 3 or (i[0] != i[1]).any(),
        "one token": lambda i: len(i[0]) > 1,
        "ties": lambda i: len(i[0]) < 3 or len(set(i[0])) == len(i[0]),
    }[name]
    assert testing.counterexample(testing.rational_pairs(), absent, examples=200) is not None


@settings(max_examples=30)
@given(testing.blocks(), st.sampled_from(verifiers.names()), st.integers(0, 2**32 - 1))
def test_every_rule_answers_every_block(block, name, seed):
    rule = verifiers.example(name)
    if "start" not in supports(rule):
        return
    verdict = rule.verify(block, rule.start(), np.random.default_rng(seed))
    assert 0 <= verdict.accepted <= block.size
    assert len(verdict.tokens) == verdict.accepted + 1
    assert list(verdict.tokens[: verdict.accepted]) == list(block.tokens[: verdict.accepted])


LAW = np.array([0.5, 0.3, 0.2, 0.0])


def test_assert_law_in_threes():
    """n draws see a deviation of 0.05 except with probability 1e-9; the true law passes except with probability 1e-9."""
    n = testing.sample_size_for(0.05, 4)
    assert testing.detectable_deviation(n, 4) <= 0.05 < testing.detectable_deviation(n - 50, 4)
    rng = np.random.default_rng(0)
    draws = rng.choice(4, n, p=LAW)
    testing.assert_law(draws, LAW)
    with pytest.raises(AssertionError, match="in TV from the claimed one"):
        testing.assert_law(draws, np.array([0.55, 0.25, 0.2, 0.0]))
    with pytest.raises(AssertionError, match="drew token 2, which has no mass"):
        testing.assert_law(draws, np.array([0.5, 0.5, 0.0, 0.0]))


def test_assert_rate_in_threes():
    """The true rate passes, and one 0.02 off is refused, but for a probability of 1e-9 each."""
    n = testing.trials_for(0.02)
    assert testing.detectable_rate_deviation(n) <= 0.02 < testing.detectable_rate_deviation(n - 50)
    hits = int(np.random.default_rng(1).binomial(n, 0.7))
    testing.assert_rate(hits, n, 0.7)
    for wrong in (0.68, 0.72):
        with pytest.raises(AssertionError, match="is not a rate of"):
            testing.assert_rate(hits, n, wrong)


@pytest.mark.parametrize("rate", [0.0, 0.03, 0.5, 1.0])
def test_a_detectable_rate_deviation_is_detected_by_the_interval_itself(rate):
    """Clopper-Pearson lies inside Hoeffding: at the edge of what Hoeffding allows the exact interval refuses."""
    from spectheory.montecarlo import clopper_pearson

    for n in (50, 1000):
        hits = round(rate * n)
        interval = clopper_pearson(hits, n, testing.statistics.FALSE_ALARM)
        radius = np.sqrt(np.log(2 / testing.statistics.FALSE_ALARM) / (2 * n))
        assert interval.lower >= hits / n - radius - 1e-12
        assert interval.upper <= hits / n + radius + 1e-12


def test_a_counterexample_is_small_and_found_again():
    def overlap_is_large(pair):
        return pmf.overlap(*pair) > Fraction(1, 3)

    found = [testing.counterexample(testing.rational_pairs(), overlap_is_large, seed=4) for _ in range(2)]
    assert all((a == b).all() for a, b in zip(*found))
    assert len(found[0][0]) == 2
    assert not overlap_is_large(found[0])


def test_no_counterexample_is_none():
    assert (
        testing.counterexample(testing.rational_pairs(), lambda i: 0 <= pmf.total_variation(*i) <= 1, examples=100)
        is None
    )


def test_a_search_tells_exceptions_and_empty_strategies():
    with pytest.raises(ZeroDivisionError):
        testing.counterexample(st.integers(0, 5), lambda i: 1 // (3 - i) > -9)
    with pytest.raises(Unsatisfiable):
        testing.counterexample(st.integers().filter(lambda i: False), bool)


def test_the_page_tells_what_its_code_finds():
    """The cells of the how-to, run in order; the prose that surrounds them holds."""
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in re.findall(r"```\{code-cell\}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            exec(cell, names)
    entropy, divergence = map(float, re.search(r"H\[R\] = ([\d.]+), D = ([\d.]+)", printed.getvalue()).groups())
    assert entropy < divergence
    assert printed.getvalue().count("fails at") == 2
    assert "mixture of drafts: None" in printed.getvalue()
    assert "calibrated draft: None" in printed.getvalue()
    assert "searched: None\nthe known witness satisfies it: False" in printed.getvalue()
