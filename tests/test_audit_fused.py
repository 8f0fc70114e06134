"""The fused pass is tied to `pmf` and the exact engine: nuclei exactly on float64 laws, figures to rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import spectheory as spec
from spectheory import DataError, pmf
from spectheory.audit import fused
from spectheory.testing import pairs
from spectheory.verifiers import Nucleus

TOP_PS = [0.0, 1e-9, 0.3, 0.5, 0.8, 0.9, 0.95, 0.999, 1 - 1e-12, 1.0]


@pytest.fixture(params=["numba", "numpy"])
def backend(request, monkeypatch):
    """Both implementations: numba must be there when the suite runs, the fallback must not need it."""
    if request.param == "numpy":
        monkeypatch.setattr(fused, "kernels", lambda: None)
    else:
        assert fused.kernels() is not None
    return request.param


def reference(p, q, top_p):
    law = spec.exact.step(Nucleus(top_p), p, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, law.output / p, 1.0).max()
    return (
        int(pmf.nucleus_size(p, top_p)),
        bool(pmf.nucleus_is_ambiguous(p, top_p)),
        float(pmf.total_variation(p, q)),
        float(law.acceptance_rate),
        float(law.deviation),
        float(law.kl_target_output),
        float(law.kl_output_target),
        float(ratio),
    )


def values(figures):
    return (*figures[:5], figures.kl_target_output, figures.kl_output_target, figures.max_ratio)


@given(pair=pairs(max_size=8), top_p=st.sampled_from(TOP_PS))
@example(pair=(np.array([1.0]), np.array([1.0])), top_p=0.9)
@example(pair=(np.array([0.5, 0.5]), np.array([0.5, 0.5])), top_p=0.5)
@example(pair=(np.array([1.0, 0.0]), np.array([0.0, 1.0])), top_p=1.0)
@example(pair=(np.array([0.3, 0.1, 0.1, 0.5]), np.array([0.25] * 4)), top_p=0.8)
@example(pair=(np.full(10, 0.1), np.full(10, 0.1)), top_p=0.8)
def test_small_laws(backend, pair, top_p):
    p, q = pmf.validate_pair(*pair)
    ours, exact = values(fused.from_laws(p, q, top_p)), reference(p, q, top_p)
    assert ours[:2] == exact[:2]
    assert ours[2:] == pytest.approx(exact[2:], abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("top_p", TOP_PS)
@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 3.0, 12.0])
def test_large_laws(backend, top_p, spread):
    rng = np.random.default_rng(int(100 * spread))
    z = rng.normal(size=20_000) * spread
    p, q = pmf.softmax(z), pmf.softmax(z + rng.normal(size=z.size) * min(spread, 1))
    figures = fused.from_laws(p, q, top_p)
    ours, exact = values(figures), reference(p, q, top_p)
    assert ours[:2] == exact[:2]
    assert ours[2:] == pytest.approx(exact[2:], abs=1e-11, rel=1e-9)
    law = fused.nsd_output(p, q, figures)
    assert abs(law - spec.exact.output_law(Nucleus(top_p), p, q)).sum() < 1e-12
    accept = Nucleus(top_p).acceptance(p, q)
    for x in rng.integers(z.size, size=20):
        assert fused.accepts(p, q, int(x), figures) == pytest.approx(accept[x])


def test_uniform_rows_keep_exactly_what_pmf_keeps(backend):
    p = np.full(151_936, 1 / 151_936)
    assert fused.from_laws(p, p, 0.999).nucleus_size == 151_785
    assert (
        fused.from_logits(np.zeros(151_936, np.float32), np.zeros(151_936, np.float32), 0.999).nucleus_size == 151_785
    )


@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.5, 2.0, 5.0]), top_p=st.sampled_from([0.5, 0.9, 0.99]))
def test_float32_exponentials_with_float64_sums(backend, seed, spread, top_p):
    """From float32 logits: figures to 1e-6, the nucleus inside the sizes that a relative error of 1e-6 allows."""
    rng = np.random.default_rng(seed)
    z = (rng.normal(size=3000) * spread).astype(np.float32)
    w = (z + rng.normal(size=3000)).astype(np.float32)
    z[rng.integers(3000, size=5)] = -np.inf
    p, q = pmf.softmax(z), pmf.softmax(w)
    ours = fused.from_logits(z, w, top_p)
    sizes = [pmf.nucleus_size(p, t) for t in (top_p - 1e-6, top_p + 1e-6)]
    assert sizes[0] <= ours.nucleus_size <= sizes[1]
    same = spec.theory.nsd.step_deviation(p, q, top_p) if ours.nucleus_size == pmf.nucleus_size(p, top_p) else None
    assert ours.tv == pytest.approx(pmf.total_variation(p, q), abs=1e-6)
    if same is not None:
        assert ours.deviation == pytest.approx(same, abs=1e-6)
        assert ours.acceptance == pytest.approx(1 - ours.tv + same, abs=1e-6)


def test_exponentials_are_accurate():
    """Relative error below 3 ulp of float32 over the whole range that is not flushed to zero."""
    compiled = fused.kernels()
    z = np.linspace(-87.2, 0, 100_001).astype(np.float32)
    out = np.empty_like(z)
    total = compiled.exponentials(z, np.float32(0), out)
    exact = np.exp(z.astype(np.float64))
    assert abs(out / exact - 1).max() < 3 * 2.0**-24 * 2
    assert total == pytest.approx(out.astype(np.float64).sum(), rel=1e-12)
    compiled.exponentials(np.array([-np.inf, -1000.0, 0.0], np.float32), np.float32(0), out[:3])
    assert out[:3].tolist() == [0, 0, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_logits_are_refused(backend, bad):
    z = np.zeros(50, np.float32)
    z[7] = bad
    with pytest.raises(DataError, match="token 7"):
        fused.from_logits(z, np.zeros(50, np.float32), 0.9)
    with pytest.raises(DataError, match="-inf everywhere"):
        fused.from_logits(np.full(50, -np.inf, np.float32), np.zeros(50, np.float32), 0.9)


def test_infinite_divergence_is_infinite(backend):
    """N6: KL(p || out) is infinite iff Delta = D > 0 and some q(x) = 0 < p(x)."""
    p, q = np.array([0.6, 0.2, 0.2]), np.array([0.9, 0.1, 0.0])
    assert fused.from_laws(p, q, 0.5).kl_target_output == math.inf
    assert math.isfinite(fused.from_laws(p, np.array([0.9, 0.05, 0.05]), 0.5).kl_target_output)


def test_the_audit_needs_no_numba(monkeypatch):
    from recordings import make_blocks

    expected = spec.audit.run(Nucleus(0.9), make_blocks()).rows
    monkeypatch.setattr(fused, "kernels", lambda: None)
    for name, column in spec.audit.run(Nucleus(0.9), make_blocks()).rows.items():
        if column.dtype.kind == "f":
            assert column == pytest.approx(expected[name], abs=1e-9), name
