"""The names that notebooks and checks rely on, each on a value known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spectheory as st

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
Q = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]])


def test_laws():
    p, q = P[0], Q[0]
    assert st.pmf.softmax(np.log(p)) == pytest.approx(p)
    assert st.pmf.nucleus(p, 0.9).tolist() == [True, True, False]
    assert not st.pmf.nucleus(p, 0.0).any()
    assert st.pmf.total_variation(p, q) == pytest.approx(0.2)
    assert st.pmf.kl(p, p) == 0
    assert st.pmf.renyi(p, q, alpha=1) == st.pmf.kl(p, q)
    assert st.pmf.hellinger(p, q) == pytest.approx(math.sqrt(1 - np.sqrt(p * q).sum()))
    assert st.pmf.entropy([0.5, 0.5]) == pytest.approx(math.log(2))
    assert st.pmf.residual(p, q) == pytest.approx([1, 0, 0])
    assert st.pmf.top_k(p, 2) == pytest.approx([7 / 9, 2 / 9, 0])
    assert st.pmf.top_p(p, 0.8) == pytest.approx([7 / 9, 2 / 9, 0])
    assert st.pmf.min_p(p, 0.2) == pytest.approx([7 / 9, 2 / 9, 0])


def test_rules_by_class_and_by_name():
    v = st.verifiers.Nucleus(top_p=0.9)
    assert st.verifiers.get("nsd", top_p=0.9) == v
    with pytest.raises(TypeError):
        st.verifiers.Nucleus()
    for name in ("standard", "nsd", "lenience", "resample-target", "sample-and-match", "block", "asd", "ersd"):
        assert name in st.verifiers.names()
    assert v.acceptance(P[0], Q[0]) == pytest.approx([1, 1, 0.5])
    assert v.residual(P[0], Q[0]) == pytest.approx([1, 0, 0])
    assert st.exact.output_law(v, P[0], Q[0]) == pytest.approx([0.6, 0.3, 0.1])
    assert st.exact.acceptance_rate(v, P[0], Q[0]) == pytest.approx(0.9)
    assert st.exact.step_deviation(v, P[0], Q[0]) == pytest.approx(0.1)
    assert st.theory.nsd.step_deviation(P[0], Q[0], 0.9) == pytest.approx(0.1)


def test_sequences():
    v = st.verifiers.Nucleus(top_p=0.8)
    model = st.models.Tabular(target=P, draft=Q, initial=0)
    assert st.exact.sequence_law(v, model, length=2, block_size=1).shape == (3, 3)
    assert st.exact.sequence_deviation(v, model, length=2, block_size=1) == pytest.approx(0.1)
    bounds = st.theory.nsd.sequence_bounds(v, model, length=2, block_size=1)
    for key in ("union", "union_target", "coupling", "uniform", "pinsker", "bretagnolle_huber", "hellinger"):
        assert isinstance(bounds[key], st.Interval)
        assert bounds[key].upper >= 0.1 - 1e-12
    assert bounds["coupling"].upper == pytest.approx(0.11)
    interval = st.theory.composition.sequence_tv([0.4, 0.6], [0.7, 0.3], length=10, block_size=None, error=1e-6)
    assert interval.kind == "certified"
    assert interval.lower <= 0.6834930498 + 1e-10
    assert interval.upper >= 0.6834930498 - 1e-10


def test_regret_budget():
    asd = st.verifiers.RegretBudget(budget=8.0, gate=0.25, cap=2, variant="suffix")
    block = st.Block(np.array([1, 0]), p=None, q=None, logits=np.array([[1.0, 0.75], [2.0, 0.0], [0.0, 1.0]]))
    verdict = asd.verify(block, asd.start(), rng=None)
    assert verdict.accepted == 2
    assert verdict.tokens.tolist() == [1, 0, 1]
    assert verdict.state.spent == 0.25


def test_races():
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.full(4, 0.25)
    assert st.exact.rank_law(p, q) == pytest.approx([2181 / 2860, 5689 / 30030, 213 / 5005, 5 / 924], abs=1e-12)
    head, error = st.exact.rank_head(p, q, 2)
    assert head == pytest.approx([2181 / 2860, 5689 / 30030], abs=error + 1e-12)
    assert 0.684453385470325 in st.exact.rank_entropy(p, q, 1e-9)
    assert st.exact.index_law(p, q, 5)[0] == pytest.approx(2181 / 2860, abs=1e-12)
    assert float(np.sum(st.theory.ersd.acceptance(p, q))) == pytest.approx(2181 / 2860, abs=1e-12)
    pmf = st.exact.rank_law(p, q)
    tree = st.theory.ersd.optimal_tree(pmf, 4)
    assert tree.parent[0] == -1
    assert st.theory.ersd.expected_tokens(pmf, 4) == pytest.approx(3.12578998618379, abs=1e-10)
    bounds = st.theory.ersd.speedup_bounds(pmf, 4, vocab_size=4)
    assert {"paper", "leaf", "vfree", "lower"} <= set(bounds)
    assert bounds["paper"].upper == pytest.approx(4.376824393228, abs=1e-10)


def test_audit_run():
    blocks = [st.Block(np.array([0, 1]), p=P, q=Q[:2])]
    report = st.audit.run(st.verifiers.Nucleus(top_p=0.8), blocks)
    assert isinstance(report, st.AuditReport)
    keys = {
        "schema_version",
        "spectheory_version",
        "verifier",
        "source",
        "claim",
        "verdict",
        "summary",
        "sweep",
        "worst_rows",
        "errors",
    }
    assert keys <= set(report.to_json())
