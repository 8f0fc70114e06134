"""Checks of NSD's claims against the exact engine, and of the optimal-residual theorem against a linear programme."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .. import exact
from ..pmf import chi_square, kl, overlap, total_variation
from ..testing import nuclei, rational_laws, rational_pairs, top_ps
from ..theory import nsd
from ..verifiers import Nucleus
from .checks import check
from .rows import coarse

C4: Any = tuple(np.array([Fraction(w, 10) for w in law], dtype=object) for law in ((4, 2, 3, 1), (1, 5, 1, 3)))
C4_8: Any = (*C4, Fraction(4, 5))
HALF = Fraction(1, 2)
ORDINARY = (Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(95, 100), Fraction(1))


def with_top_p(p: Any, q: Any, n: int) -> Any:
    """The n-th pair of laws with one of the settings in ordinary use."""
    return p, q, ORDINARY[n % len(ORDINARY)]


def small(p: Any, q: Any, n: int) -> Any:
    """The same on coarse laws in Fractions, for claims decided by exact equality or by a linear programme."""
    return with_top_p(*coarse(p, q), n)


def own_acceptance(p: Any, q: Any, n: int) -> Any:
    """(p, q, NSD's own acceptance) on coarse laws."""
    p, q, top_p = small(p, q, n)
    return p, q, Nucleus(top_p).acceptance(p, q)


def deviation(i: Any) -> Any:
    return exact.step_deviation(Nucleus(i[2]), i[0], i[1])


def law(i: Any) -> Any:
    return exact.output_law(Nucleus(i[2]), i[0], i[1])


def rate(i: Any) -> Any:
    return exact.acceptance_rate(Nucleus(i[2]), i[0], i[1])


@st.composite
def with_residual(draw: st.DrawFn) -> Any:
    """(p, q, top_p, r): a nucleus instance and any residual law, the standard one included."""
    p, q, top_p = draw(nuclei())
    best = exact.best_residual(Nucleus(top_p), p, q)
    return p, q, top_p, draw(st.one_of(rational_laws(len(p)), st.just(p), st.just(best)))


@st.composite
def ordered_top_ps(draw: st.DrawFn) -> Any:
    p, q = draw(rational_pairs())
    low, high = sorted((draw(top_ps()), draw(top_ps())))
    return p, q, low, high


@st.composite
def acceptances(draw: st.DrawFn, over: bool = False) -> Any:
    """(p, q, A) with any acceptance rule, or one that accepts at least what the standard rule does."""
    p, q = draw(rational_pairs())
    unit = st.fractions(0, 1, max_denominator=8)
    a = np.array(draw(st.lists(unit, min_size=len(p), max_size=len(p))), dtype=object)
    if over:
        standard = np.array([min(Fraction(1), x / y) if y else Fraction(1) for x, y in zip(p, q)], dtype=object)
        a = np.maximum(a, standard)
    return p, q, a


def emitted(p: Any, q: Any, a: Any, r: Any) -> Any:
    return q * a + (1 - sum(q * a)) * r


def deviation_with_residual(i: Any) -> Any:
    p, q, top_p, r = i
    return total_variation(emitted(p, q, Nucleus(top_p).acceptance(p, q), r), p)


def least_deviation_by_programme(i: Any) -> float:
    """min over residuals of TV(qA + (1 - beta) r, p) as a linear programme in (r, t), t >= +-(output - p)."""
    from scipy.optimize import linprog

    p, q, a = (np.asarray(x, dtype=float) for x in i)
    size, kept = len(p), q * a
    beta = min(1.0, kept.sum())
    eye = np.eye(size)
    upper = np.block([[(1 - beta) * eye, -eye], [-(1 - beta) * eye, -eye]])
    one = np.concatenate([np.ones(size), np.zeros(size)])[None]
    cost = np.concatenate([np.zeros(size), np.full(size, 0.5)])
    solution: Any = linprog(cost, upper, np.concatenate([p - kept, kept - p]), one, [1.0], (0, None))
    return float(solution.fun)


check(
    "N1",
    instances=nuclei(),
    claimed=lambda i: nsd.step_deviation(*i),
    second=deviation,
    mutated=lambda i: nsd.step_deviation(i[1], i[0], i[2]),
    tolerance=0,
    golden=[(C4_8, Fraction(3, 10))],
    pairs=with_top_p,
)
check(
    "N2",
    instances=nuclei(),
    claimed=lambda i: nsd.acceptance_rate(*i),
    second=rate,
    mutated=lambda i: overlap(i[0], i[1]),
    tolerance=0,
    golden=[(C4_8, Fraction(4, 5))],
    pairs=with_top_p,
)
check(
    "N3",
    instances=nuclei(),
    claimed=lambda i: nsd.output_law(*i),
    second=law,
    mutated=lambda i: i[0] + nsd.step_deviation(*i) * (i[1] - i[0]),
    tolerance=0,
    golden=[(C4_8, [Fraction(w, 100) for w in (22, 50, 18, 10)])],
    pairs=with_top_p,
)
check(
    "N4",
    instances=with_residual(),
    claimed=lambda i: nsd.least_deviation(*i[:3]),
    second=deviation_with_residual,
    mutated=lambda i: total_variation(i[0], i[1]),
    tolerance=0,
    golden=[((*C4_8, C4[0]), Fraction(3, 10))],
    pairs=lambda p, q, n: (*with_top_p(p, q, n), p),
)
check(
    "N4.iff",
    instances=with_residual(),
    claimed=lambda i: int(nsd.residual_is_optimal(*i)),
    second=lambda i: int(deviation_with_residual(i) == nsd.step_deviation(*i[:3])),
    mutated=lambda i: int(bool((i[3] <= np.maximum(i[0] - i[1], 0)).all())),
    tolerance=0,
    golden=[((*C4_8, C4[0]), 0)],
    pairs=lambda p, q, n: (*small(p, q, n), coarse(p, q)[0]),
)
check(
    "N4.resample",
    instances=nuclei(),
    claimed=lambda i: int(nsd.resampling_is_worse(*i)),
    second=lambda i: int(deviation_with_residual((*i, i[0])) > nsd.step_deviation(*i)),
    mutated=lambda i: int(total_variation(i[0], i[1]) > 0),
    tolerance=0,
    golden=[(C4_8, 1)],
    pairs=small,
)
check(
    "N5",
    instances=ordered_top_ps(),
    claimed=lambda i: nsd.monotone_bound(i[0], i[1], i[3]),
    second=lambda i: (deviation(i), rate(i)),
    mutated=lambda i: nsd.monotone_bound(i[0], i[1], 0),
    tolerance=0,
    pairs=lambda p, q, n: (p, q, HALF, ORDINARY[n % len(ORDINARY)]),
)
check(
    "N5.cap",
    instances=nuclei(),
    claimed=lambda i: nsd.deviation_cap(*i[:2]),
    second=deviation,
    mutated=lambda i: nsd.deviation_cap(*i[:2]) / 2,
    tolerance=0,
    golden=[(C4_8, HALF)],
    pairs=with_top_p,
)
check(
    "N5.draft",
    instances=rational_pairs(),
    claimed=lambda i: int(nsd.degenerates_to_draft(*i)),
    second=lambda i: int(bool((law((*i, 1)) == i[1]).all())),
    mutated=lambda i: int(bool(((i[0] == 0) | (i[1] > 0)).all())),
    tolerance=0,
    golden=[(C4, 1)],
    pairs=lambda p, q, n: coarse(p, q),
)
check(
    "N6.ratio",
    instances=nuclei(),
    claimed=lambda i: nsd.least_ratio(*i),
    second=lambda i: min(b / a for a, b in zip(i[0], law(i)) if a),
    mutated=lambda i: 1 - nsd.step_deviation(*i),
    tolerance=0,
    golden=[(C4_8, Fraction(2, 5))],
    pairs=with_top_p,
)
check(
    "N6.kl",
    instances=nuclei(),
    claimed=lambda i: nsd.kl_target_bound(*i),
    second=lambda i: kl(i[0], law(i)),
    mutated=lambda i: nsd.step_deviation(*i) ** 2,  # half of what Pinsker's inequality allows
    golden=[(C4_8, 0.9162907318741551)],
    pairs=with_top_p,
)
check(
    "N6.max_ratio",
    instances=nuclei(),
    claimed=lambda i: nsd.largest_ratio(*i),
    second=lambda i: max(b / a if a else 1 for a, b in zip(i[0], law(i))),
    mutated=lambda i: 1 + nsd.step_deviation(*i),
    tolerance=0,
    golden=[(C4_8, Fraction(5, 2))],
    pairs=with_top_p,
)
check(
    "N6.chi2",
    instances=nuclei(),
    claimed=lambda i: nsd.kl_output_bound(*i),
    second=lambda i: kl(law(i), i[0]),
    mutated=lambda i: chi_square(law(i), i[0]) / 4,
    pairs=with_top_p,
)
check(
    "N6.infinite",
    instances=nuclei(),
    claimed=lambda i: int(nsd.kl_target_is_infinite(*i)),
    second=lambda i: int(kl(i[0], law(i)) == np.inf),
    mutated=lambda i: int(bool(((i[1] == 0) & (i[0] > 0)).any())),
    tolerance=0,
    golden=[(C4_8, 0)],
    pairs=small,
)
check(
    "N6.delta_alone",
    instances=nuclei(),
    claimed=lambda i: nsd.kl_by_delta_alone(*i),
    second=lambda i: kl(i[0], law(i)),
    mutated=lambda i: nsd.kl_target_bound(*i),
    golden=[((np.array([HALF, HALF]), np.array([2 * HALF, 0 * HALF]), HALF), None)],
    pairs=with_top_p,
)
check(
    "N7",
    instances=acceptances(),
    claimed=lambda i: nsd.least_deviation_of(*i),
    second=least_deviation_by_programme,
    mutated=lambda i: nsd.extra_acceptance(*i),
    golden=[((*C4, Nucleus(Fraction(4, 5)).acceptance(*C4)), Fraction(3, 10))],
    pairs=own_acceptance,
)
check(
    "N7.over",
    instances=acceptances(over=True),
    claimed=lambda i: nsd.extra_acceptance(*i),
    second=least_deviation_by_programme,
    mutated=lambda i: total_variation(i[0], i[1]),
    golden=[((*C4, Nucleus(Fraction(4, 5)).acceptance(*C4)), Fraction(3, 10))],
    pairs=own_acceptance,
)
