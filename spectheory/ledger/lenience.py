"""Checks of the lenience claims against the exact engine."""

from __future__ import annotations

from typing import Any

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


check(
    "L1",
    instances=instances(),
    claimed=lambda i: [lenience.largest_law(i[0], i[2])] * 2,
    second=lambda i: [exact.output_law(Lenience(i[2], kind), *i[:2]) for kind in ("standard", "scaled")],
    mutated=lambda i: [i[0]] * 2,
    tolerance=0,
)
check(
    "L2",
    instances=instances(),
    claimed=lambda i: lenience.step_deviation(*i),
    second=lambda i: exact.step_deviation(Lenience(i[2]), *i[:2]),
    mutated=lambda i: (1 - i[2]) * lenience.step_deviation(*i),
    tolerance=0,
)
check(
    "L2.scaled",
    instances=instances(),
    claimed=lambda i: lenience.scaled_deviation(*i),
    second=lambda i: exact.step_deviation(Lenience(i[2], "scaled"), *i[:2]),
    mutated=lambda i: exact.step_deviation(Lenience(i[2], "scaled"), *i[:2]),
    tolerance=0,
)
