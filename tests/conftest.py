"""Fixtures shared by the suite: the array namespaces, and the rules that every conformance test runs over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from spectheory import verifiers
from spectheory.protocols import supports

# Deterministic examples: a failure in CI is the same failure at a desk. No deadline: CI shares its two cores. Rules are
# immutable, so a fixture that hands one out needs no reset between examples.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("ci")

TOKEN_RULES = [name for name in verifiers.names() if {"acceptance", "residual"} <= supports(verifiers.example(name))]


@pytest.fixture(params=TOKEN_RULES)
def token_rule(request):
    """Each registered token rule with its example settings."""
    return verifiers.example(request.param)


@pytest.fixture(params=["numpy", "torch"])
def xp_array(request):
    """A function that makes a float64 array of the namespace."""
    if request.param == "numpy":
        return lambda x: np.asarray(x, dtype=np.float64)
    import torch

    return lambda x: torch.as_tensor(np.array(x, dtype=np.float64))


@pytest.fixture
def c4():
    """The canonical pair: two over- and two under-weighted tokens, so that one-token residuals cannot hide faults."""
    return np.array([0.4, 0.2, 0.3, 0.1]), np.array([0.1, 0.5, 0.1, 0.3])
