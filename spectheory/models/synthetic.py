"""Named random families of (target, draft) pairs: the shapes that break verifiers, from mild to hostile."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import UsageError
from ..pmf import softmax

Pair = tuple[Any, Any]
Family = Callable[[np.random.Generator, int, int], Pair]


def synthetic_pairs(family: str, n: int, vocab_size: int, seed: int = 0) -> Pair:
    """`n` pairs of laws (n, V) each from a named family (`FAMILIES`), reproducible from (family, seed).

    Raises UsageError for an unknown family or V < 1.
    """
    if family not in FAMILIES:
        raise UsageError(f"unknown family {family!r}: choose one of {', '.join(FAMILIES)}")
    if vocab_size < 1 or n < 0:
        raise UsageError(f"vocab_size must be >= 1 and n >= 0, not {vocab_size} and {n}")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(family.encode()),)))
    return FAMILIES[family](rng, n, vocab_size)


def _dirichlet(concentration: float) -> Family:
    def draw(rng: np.random.Generator, n: int, size: int) -> Pair:
        return _gamma(rng, concentration, n, size), _gamma(rng, concentration, n, size)

    return draw


def _gamma(rng: np.random.Generator, concentration: float, n: int, size: int) -> Any:
    """Dirichlet rows through log-gammas, so that tiny concentrations do not underflow to 0/0."""
    log_gamma = np.log(rng.standard_gamma(concentration + 1, (n, size)))
    return softmax(log_gamma + np.log(rng.random((n, size))) / concentration)


def _zipf(rng: np.random.Generator, n: int, size: int) -> Pair:
    """Power laws of random exponents; the draft permutes the target's tail."""
    ranks = np.log(np.arange(1, size + 1))
    p = softmax(-rng.uniform(0.5, 2, (n, 1)) * ranks)
    q = softmax(-rng.uniform(0.5, 2, (n, 1)) * ranks)
    head = size // 2
    order = np.tile(np.arange(size), (n, 1))
    order[:, head:] = rng.permuted(order[:, head:], axis=1)
    return p, np.take_along_axis(q, order, axis=1)


def _near_identical(rng: np.random.Generator, n: int, size: int) -> Pair:
    z = rng.normal(0, 2, (n, size))
    return softmax(z), softmax(z + rng.normal(0, 1, (n, size)) * 10.0 ** rng.uniform(-12, -2, (n, 1)))


def _identical(rng: np.random.Generator, n: int, size: int) -> Pair:
    p = _gamma(rng, 1.0, n, size)
    return p, p.copy()


def _temperature(rng: np.random.Generator, n: int, size: int) -> Pair:
    """The draft is the target at another temperature."""
    z = rng.normal(0, 3, (n, size))
    return softmax(z), softmax(z / rng.uniform(0.3, 3, (n, 1)))


def _one_hot(rng: np.random.Generator, n: int, size: int) -> Pair:
    eye = np.eye(size)
    return eye[rng.integers(size, size=n)], eye[rng.integers(size, size=n)]


def _near_one_hot(rng: np.random.Generator, n: int, size: int) -> Pair:
    p, q = _one_hot(rng, n, size)
    leak = 10.0 ** rng.uniform(-16, -1, (2, n, 1))
    return tuple((1 - e) * x + e * _gamma(rng, 1.0, n, size) for e, x in zip(leak, (p, q)))


def _disjoint(rng: np.random.Generator, n: int, size: int) -> Pair:
    """Supports that do not meet (impossible for one token: there the pair is equal)."""
    p, q = _gamma(rng, 1.0, n, size), _gamma(rng, 1.0, n, size)
    if size == 1:
        return p, q
    first = np.arange(size) < rng.integers(1, size, (n, 1))
    p, q = np.where(first, p, 0), np.where(first, 0, q)
    return p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)


def _uniform(rng: np.random.Generator, n: int, size: int) -> Pair:
    """Uniform target (all ties), draft uniform on a random subset."""
    keep = rng.random((n, size)) < 0.7
    keep[~keep.any(axis=1), 0] = True
    return np.full((n, size), 1 / size), keep / keep.sum(1, keepdims=True)


def _boundary(rng: np.random.Generator, n: int, size: int) -> Pair:
    """Targets whose prefix sums meet common top_p settings exactly: tenths, dealt out to the tokens."""
    p = (
        np.stack([np.bincount(rng.integers(size, size=20), minlength=size) for _ in range(n)]) / 20
        if n
        else np.empty((0, size))
    )
    return p, _gamma(rng, 0.5, n, size)


FAMILIES: dict[str, Family] = {
    "dirichlet-0.05": _dirichlet(0.05),
    "dirichlet-1": _dirichlet(1.0),
    "dirichlet-50": _dirichlet(50.0),
    "zipf": _zipf,
    "identical": _identical,
    "near-identical": _near_identical,
    "temperature": _temperature,
    "one-hot": _one_hot,
    "near-one-hot": _near_one_hot,
    "disjoint": _disjoint,
    "uniform": _uniform,
    "boundary": _boundary,
}
