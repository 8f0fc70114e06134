"""Checks of ERSD's one-position claims (E1, E2, E3, E7) against the exact race engine."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .. import exact, pmf
from ..testing import calibrated, race_pairs, rational_pairs, skewed_pairs
from ..theory import ersd
from ..verifiers.exponential_race import ExponentialRace
from .checks import check

RULE = ExponentialRace()


def race(name: str, claimed: Any, second: Any, mutated: Any, instances: Any = None, tolerance: float = 1e-9) -> None:
    """A check over pairs (P, Q)."""
    check(
        name,
        instances=rational_pairs(1, 4) if instances is None else instances,
        claimed=lambda i: claimed(*i),
        second=lambda i: second(*i),
        mutated=lambda i: mutated(*i),
        tolerance=tolerance,
    )


def accepted(p: Any, q: Any) -> Any:
    return exact.rank_law(p, q)[0]


race("E1.lossless", ersd.output_law, lambda p, q: exact.output_law(RULE, p, q), lambda p, q: q, tolerance=0)
race("E1.accept", ersd.acceptance, accepted, lambda p, q: 1 - pmf.total_variation(p, q), tolerance=0)
race("E1.lower", ersd.acceptance_lower, accepted, ersd.acceptance_upper, tolerance=0)
race("E1.upper", ersd.acceptance_upper, accepted, ersd.acceptance_lower, tolerance=0)
race(
    "E1.second",
    ersd.second_rank,
    lambda p, q: exact.rank_law(p, q)[1],
    lambda p, q: 1 - ersd.acceptance(p, q),
    rational_pairs(2, 4),
    0,
)
race(
    "E1.mean",
    ersd.mean_rank,
    lambda p, q: exact.mean(exact.rank_law(p, q)),
    lambda p, q: 1 + ersd.second_rank(p, q),
    tolerance=0,
)
race(
    "E1.two",
    ersd.two_token_law,
    exact.rank_law,
    lambda p, q: ersd.two_token_law(p, q)[::-1],
    rational_pairs(2, 2),
    0,
)


def uniform(law: Any) -> Any:
    """The uniform law on the support of `law`, in Fractions."""
    n = int(np.sum(law > 0))
    return np.array([Fraction(int(x > 0), n) for x in law], dtype=object)


# Two subsets of four tokens: unless they overlap in part, the wrong formula is right, and common pairs seldom do.
_SUBSETS = st.lists(st.integers(0, 1), min_size=4, max_size=4).filter(any).map(lambda w: np.array(w, dtype=object))
race(
    "E1.uniform",
    ersd.jaccard,
    lambda p, q: accepted(uniform(p), uniform(q)),
    lambda p, q: 1 - pmf.total_variation(uniform(p), uniform(q)),
    st.tuples(_SUBSETS, _SUBSETS),
    tolerance=0,
)


def mean_log_index(p: Any, q: Any) -> float:
    """E ln K over the first 1500 indices, a lower bound; the tail is below (50 / 51)^1500 for weights up to 12."""
    return exact.log_mean(exact.index_law(p.astype(float), q.astype(float), 1500))


def rank_entropy(p: Any, q: Any) -> float:
    return float(pmf.entropy(exact.rank_law(p, q)))


def index_entropy(p: Any, q: Any) -> float:
    return float(exact.index_entropy(p, q).upper)


race("E2.log_lambda", ersd.log_rank_lambda, mean_log_index, lambda p, q: ersd.log_rank_lambda(p, q) / 2, race_pairs())
race(
    "E2.log",
    ersd.log_rank_bound,
    ersd.log_rank_lambda,
    lambda p, q: ersd.log_rank_bound(p, q) - math.log(2),
    race_pairs(),
)
race(
    "E2.entropy",
    ersd.index_entropy_bound,
    lambda p, q: max(rank_entropy(p, q), index_entropy(p, q)),
    lambda p, q: ersd.divergence(p, q),
    race_pairs(),
)
race(
    "E2.selection",
    ersd.selection_entropy,
    index_entropy,
    lambda p, q: index_entropy(p, q) + ersd.selection_entropy(p, q) / 2,
    race_pairs(),
)
race(
    "E2.dcs",
    ersd.channel_simulation_divergence,
    ersd.selection_entropy,
    ersd.index_entropy_bound,
    race_pairs(),
)
race("E2.kl", ersd.divergence, ersd.channel_simulation_divergence, ersd.log_rank_bound, race_pairs())


def mixture(p: Any, q: Any) -> float:
    return ersd.mixture_bound(p, exact.rank_law(p, q), exact.draft_laws(q))


race("E2.mixture", mixture, rank_entropy, lambda p, q: ersd.divergence(p, q), skewed_pairs())


def class_rank_law(targets: Any, weights: Any) -> Any:
    mean = (weights[:, None] * targets).sum(axis=0)
    return sum(w * exact.rank_law(t, mean) for t, w in zip(targets, weights) if w > 0)


check(
    "E2.calibrated",
    instances=calibrated(),
    claimed=lambda i: ersd.calibrated_bound(*i),
    second=lambda i: float(pmf.entropy(class_rank_law(*i))),
    mutated=lambda i: 2 * ersd.calibrated_bound(*i) + 0.1,
)

race("E3.entropy", ersd.naive_entropy_bound, rank_entropy, mixture, skewed_pairs())
race(
    "E3.monotone",
    lambda p, q: ersd.rank_rise(exact.rank_law(p, q)),
    lambda p, q: max(np.diff(exact.rank_law(p, q))),
    lambda p, q: 1 - accepted(p, q),
    rational_pairs(2, 4),
    0,
)
race(
    "E3.zero",
    ersd.distance_at_zero_entropy,
    lambda p, q: pmf.total_variation(p, q) if rank_entropy(p, q) == 0 else 0,
    lambda p, q: 1 - accepted(p, q),
    tolerance=0,
)


def reused_by_order(p: Any, q: Any) -> Any:
    """The shared-noise output law by following the noise: the draft's race ends at time s ~ Exp(1) with winner x, and

    E_j = s q_j + Exp(1) for the others by memorylessness. A rejected x has no residual mass, so these others decide.
    """
    return np.minimum(p, q) + np.maximum(q - p, 0 * p).sum() * head_start(pmf.residual(p, q), q)


def head_start(law: Any, start: Any) -> Any:
    """P(argmin (s start_j + Exp(1)) / law_j = y), (V,), s ~ Exp(1): hazard law_j is on from s start_j / law_j.

    Between two switching times s a and s b of total hazard h, E[survival] = 1 / (1 + the hazard spent so far).
    """
    alive, out, spent = np.flatnonzero(law > 0), 0 * law, 0 * law[0]
    begin = start[alive] / law[alive]
    times = np.sort(begin)
    for n, a in enumerate(times):
        on = alive[begin <= a]
        hazard = law[on].sum()
        last = n + 1 == len(times)
        after = spent if last else spent + hazard * (times[n + 1] - a)
        gone = 1 / (1 + spent) - (0 if last else 1 / (1 + after))
        out[on] = out[on] + gone * law[on] / hazard
        spent = after
    return out


race("E3.reuse", ersd.lossless_law, reused_by_order, ersd.reused_noise_law, rational_pairs(2, 4))


def conditional_miss(p: Any, q: Any) -> Any:
    joint = exact.rank_joint(p, q)[:, 0]
    return np.array([1 - a / b if b > 0 else 0 for a, b in zip(joint, p)], dtype=object)


race("E7.matching", ersd.matching_miss, conditional_miss, lambda p, q: ersd.matching_miss(p, q) / 2, tolerance=0)
