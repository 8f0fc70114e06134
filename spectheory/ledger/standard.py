"""Checks of the standard rule's claims against the exact engine."""

from __future__ import annotations

from fractions import Fraction

from .. import exact
from ..testing import rational_pairs
from ..theory import standard
from ..verifiers import Standard
from .checks import check
from .nsd import C4

RULE = Standard()

check(
    "S1",
    instances=rational_pairs(),
    claimed=lambda i: standard.output_law(*i),
    second=lambda i: exact.output_law(RULE, *i),
    mutated=lambda i: i[1],
    tolerance=0,
    golden=[(C4, C4[0])],
    pairs=lambda p, q, n: (p, q),
)
check(
    "S2",
    instances=rational_pairs(),
    claimed=lambda i: standard.acceptance_rate(*i),
    second=lambda i: exact.acceptance_rate(RULE, *i),
    mutated=lambda i: sum(a * min(1, a / b) if b else a for a, b in zip(*i)),
    tolerance=0,
    golden=[(C4, Fraction(1, 2))],
    pairs=lambda p, q, n: (p, q),
)
