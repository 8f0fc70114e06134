"""Checks of the lenience claims against the exact engine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .. import exact
from ..testing import rational_pairs
from ..theory import lenience
from ..verifiers import Lenience
from .checks import check


def instances() -> st.SearchStrategy[Any]:
    """(p, q, l) in Fractions."""
    levels = st.fractions(0, 1, max_denominator=12).filter(bool)
    return st.tuples(rational_pairs(), levels).map(lambda i: (*i[0], i[1]))


LEVELS = (Fraction(1), Fraction(4, 5), Fraction(1, 2), Fraction(1, 10))
SHEET = tuple(np.array([Fraction(w, 100) for w in law], dtype=object) for law in ((50, 40, 10), (20, 45, 35)))
HALF = (*SHEET, Fraction(1, 2))


def with_level(p: Any, q: Any, n: int) -> Any:
    return p, q, float(LEVELS[n % len(LEVELS)])


check(
    "L1",
    instances=instances(),
    claimed=lambda i: [lenience.largest_law(i[0], i[2])] * 2,
    second=lambda i: [exact.output_law(Lenience(i[2], kind), *i[:2]) for kind in ("standard", "scaled")],
    mutated=lambda i: [i[0]] * 2,
    tolerance=0,
    golden=[(HALF, [[1, Fraction(4, 5), Fraction(1, 5)]] * 2)],
    pairs=with_level,
)
check(
    "L2",
    instances=instances(),
    claimed=lambda i: lenience.step_deviation(*i),
    second=lambda i: exact.step_deviation(Lenience(i[2]), *i[:2]),
    mutated=lambda i: (1 - i[2]) * lenience.step_deviation(*i),
    tolerance=0,
    golden=[(HALF, Fraction(3, 20))],
    pairs=with_level,
)
check(
    "L2.scaled",
    instances=instances(),
    claimed=lambda i: lenience.scaled_deviation(*i),
    second=lambda i: exact.step_deviation(Lenience(i[2], "scaled"), *i[:2]),
    mutated=lambda i: exact.step_deviation(Lenience(i[2], "scaled"), *i[:2]),
    tolerance=0,
    golden=[(HALF, Fraction(3, 20))],
    pairs=with_level,
)
