"""Lenience: A = min(1, p / (l q)). Its output is at most p / l, and its best residual is the standard one.

Source: Leviathan et al. 2211.17192, App. A.5.
"""

from __future__ import annotations

from ..arrays import Array, align, minimum, scalar, total
from ..pmf import overlap
from .registry import theorem

LEVIATHAN = "arXiv:2211.17192, App. A.5"


@theorem(
    "L1",
    source=LEVIATHAN,
    statement=r"\tilde p \le p / l",
    relation="<=",
    hypotheses="laws p, q; 0 < l <= 1; residual (p - q)_+ or (p - l q)_+",
    status="proved",
)
def largest_law(p: Array, lenience: float) -> Array:
    """p / l, (..., V): no token is emitted with more than this probability."""
    return align(p)[0] / lenience


@theorem(
    "L2",
    source="arXiv:2411.00841",
    statement=r"\mathrm{TV}(\tilde p, p) = \sum \min(q, p / l) - \sum \min(q, p)",
    relation="=",
    hypotheses="laws p, q; 0 < l <= 1; standard residual",
    status="proved",
)
def step_deviation(p: Array, q: Array, lenience: float) -> Array:
    """Deviation of one lenient step with the standard residual, (...): its extra acceptance (theorem N7)."""
    p, q = align(p, q)
    return scalar(total(minimum(q + 0 * p, p / lenience + 0 * q)) - overlap(p, q))


@theorem(
    "L2.scaled",
    source=LEVIATHAN,
    statement=r"\text{residual } (p - l q)_+:\ \mathrm{TV}(\tilde p, p) \le \sum \min(q, p / l) - \sum \min(q, p)",
    relation="<=",
    hypotheses="laws p, q; 0 < l <= 1; scaled residual",
    status="false",
    counterexample="p = (.5, .4, .1), q = (.2, .45, .35), l = .5: .195652 with the scaled residual, .15 with the standard one",
    replacement="L2 with the standard residual; with the scaled one TV is at least that",
)
def scaled_deviation(p: Array, q: Array, lenience: float) -> Array:
    """The claim that the scaled residual deviates no more than the standard one, (...). False: see the counterexample."""
    return step_deviation(p, q, lenience)
