"""Tabular models: contexts, samplers, coarse-graining, and what they refuse."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectheory as spec
from spectheory import models
from spectheory.errors import CostError, DataError, UsageError
from spectheory.testing import assert_law, pairs, tabulars

ONE = np.array([[1.0]])


def test_one_token():
    model = models.Tabular(ONE, ONE)
    assert model.vocab_size == 1
    assert model.order == 0
    p, q = model.laws(np.zeros((2, 5), dtype=int))
    assert p.tolist() == q.tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("target", "draft", "initial", "message"),
    [
        ([[0.5, 0.6]], [[0.5, 0.5]], 0, "target row 0 sums to 1.1"),
        ([[0.5, 0.5]], [[1.5, -0.5]], 0, "draft row 0, token 1 has negative mass"),
        ([[0.5, 0.5]] * 3, [[0.5, 0.5]] * 3, 0, "3 rows over 2 tokens"),
        ([[0.5, 0.5]] * 2, [[0.5, 0.5]], 0, "tables .* of one shape"),
        ([[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2, 2, "initial context 2 is not one of the 2 rows"),
        ([0.5, 0.5], [0.5, 0.5], 0, "tables"),
        ([[np.nan, 1]], [[0.5, 0.5]], 0, "target row 0, token 0 is NaN"),
    ],
)
def test_bad_tables_are_named(target, draft, initial, message):
    with pytest.raises(DataError, match=message):
        models.Tabular(target, draft, initial)


def test_contexts_are_base_v_numbers_of_the_last_tokens():
    model = models.random_tabular(np.random.default_rng(0), 3, order=2)
    for prefix in ([0, 1, 2], [2, 2, 1, 0], [1, 2]):
        assert model.contexts(np.array([prefix])).tolist() == [3 * prefix[-2] + prefix[-1]]
    assert model.contexts(np.zeros((1, 0))).tolist() == [model.initial]
    with pytest.raises(DataError, match="prefix token at position 0, 1 is 3"):
        model.laws(np.array([[0, 3]]))


def test_closeness_runs_from_independent_to_equal():
    same = models.random_tabular(np.random.default_rng(1), 4, closeness=1.0)
    assert np.array_equal(same.target, same.draft)
    apart = models.random_tabular(np.random.default_rng(1), 4, closeness=0.0)
    assert spec.pmf.total_variation(apart.target, apart.draft) > 0.05


def test_samples_follow_the_target():
    """False alarm 1e-9."""
    model = models.random_tabular(np.random.default_rng(2), 3, order=1)
    draws = model.sample(20_000, 2, np.random.default_rng(3))
    law = spec.exact.target_law(model, length=2).ravel()
    assert_law(draws @ [3, 1], law)
    with pytest.raises(UsageError, match="length"):
        model.sample(1, 0, np.random.default_rng(0))


def test_a_context_that_the_table_does_not_hold_is_named():
    tree = models.unroll(models.random_tabular(np.random.default_rng(0), 2), 2)
    with pytest.raises(DataError, match="unreachable"):
        tree.laws(np.array([[0, 1]]))
    with pytest.raises(DataError, match="unreachable"):
        spec.exact.sequence_law(spec.verifiers.Standard(), tree, length=3, block_size=1)
    with pytest.raises(DataError, match="unreachable"):
        spec.theory.bounds.sequence_bounds(spec.verifiers.Standard(), tree, length=3, block_size=1)
    with pytest.raises(CostError, match="cap of 10"):
        models.unroll(models.random_tabular(np.random.default_rng(0), 2), 5, cap=10)


class Stranger:
    """Somebody's model: the protocol, and laws that depend on the whole prefix."""

    vocab_size = 2

    def laws(self, prefixes):
        p = (1 + prefixes.sum(axis=1)) / (2 + prefixes.shape[1])
        return np.column_stack([p, 1 - p]), np.column_stack([1 - p / 2, p / 2])


def test_any_model_is_a_prefix_tree():
    tree = models.unroll(Stranger(), 3)
    assert tree.target.shape == (7, 2)
    for prefix in ([], [0], [1], [1, 0], [1, 1]):
        at = np.array([prefix], dtype=int).reshape(1, -1)
        assert np.allclose(tree.laws(at), Stranger().laws(at))
    rule = spec.verifiers.Nucleus(0.5)
    via_model = spec.exact.sequence_law(rule, Stranger(), length=3, block_size=2)
    assert np.array_equal(via_model, spec.exact.sequence_law(rule, tree, length=3, block_size=2))


@given(pairs(min_size=2), st.randoms(use_true_random=False))
def test_merging_tokens_never_raises_a_divergence(pair, random):
    p, q = pair
    groups = np.array([random.randrange(2) for _ in p])
    groups[0], groups[-1] = 0, 1
    a, b = models.merge_tokens(p, groups), models.merge_tokens(q, groups)
    for distance in (spec.pmf.total_variation, spec.pmf.kl, spec.pmf.hellinger):
        assert distance(a, b) <= distance(p, q) + 1e-12


def test_coarse_tables_bound_the_mean_recorded_deviation_from_below():
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(12), (2, 200))
    groups, previous = np.arange(12) % 3, rng.integers(0, 12, 200)
    rule = spec.verifiers.Nucleus(0.8)
    out = spec.exact.output_law(rule, p, q)
    coarse = models.coarse_tabular(p, out, groups, previous)
    assert coarse.target.shape == (3, 3)
    deviation = spec.pmf.total_variation(out, p)
    for g in range(3):
        there = deviation[groups[previous] == g].mean()
        assert spec.pmf.total_variation(coarse.draft[g], coarse.target[g]) <= there + 1e-12
    whole = models.coarse_tabular(p, out, groups)
    assert spec.pmf.total_variation(whole.draft[0], whole.target[0]) <= deviation.mean() + 1e-12


def test_a_rule_run_on_merged_laws_is_another_rule():
    """Merging first may raise NSD's deviation: no order relation, as the documentation says."""
    p, q = np.array([0.4, 0.3, 0.3]), np.array([0.35, 0.3, 0.35])
    rule, groups = spec.verifiers.Nucleus(0.5), np.array([0, 1, 1])
    merged = models.merge_tokens(p, groups), models.merge_tokens(q, groups)
    assert spec.exact.step_deviation(rule, *merged) > spec.exact.step_deviation(rule, p, q)


@pytest.mark.parametrize(
    ("groups", "message"), [([0, 1], "must be"), ([0, -1, 1], "must be"), ([0, 2, 2], "every number")]
)
def test_bad_groups(groups, message):
    with pytest.raises(DataError, match=message):
        models.merge_tokens(np.full(3, 1 / 3), np.array(groups))


@given(tabulars())
def test_strategies_make_exact_models(model):
    assert all(isinstance(x, F | int) for x in model.target.ravel())
    assert spec.exact.target_law(model, length=2).sum() == 1
