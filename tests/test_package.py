"""What a stranger meets first: a light import, the public names, a quick help, and dependencies that are stated."""

from __future__ import annotations

import subprocess
import sys

import pytest

import spectheory as spec

HEAVY = ("torch", "sympy", "matplotlib", "numba", "hypothesis", "scipy.stats", "transformers")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "first", ["pass", "spectheory.exact, spectheory.theory.nsd, spectheory.verifiers, spectheory.pmf, spectheory.cli"]
)
def test_import_loads_none_of_the_heavy_modules(first):
    statement = "pass" if first == "pass" else f"import {first}"
    loaded = run(f"import sys, spectheory\n{statement}\nprint([m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded.strip() == "[]"


def test_every_public_name_resolves():
    for name in spec.__all__:
        assert getattr(spec, name) is not None
    assert set(spec.__all__) <= set(dir(spec))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = spec.nonsense


@pytest.mark.parametrize("part", ["pmf", "verifiers", "exact", "models", "montecarlo", "testing", "ledger"])
def test_all_is_what_the_part_offers(part):
    module = getattr(spec, part)
    assert all(hasattr(module, name) for name in module.__all__)
    assert sorted(set(module.__all__)) == sorted(module.__all__)


def test_python_dash_m_works():
    out = subprocess.run([sys.executable, "-m", "spectheory", "--version"], capture_output=True, text=True, check=True)
    assert spec.__version__ in out.stdout
