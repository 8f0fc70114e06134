"""Checks of the standard rule's claims against the exact engine."""

from __future__ import annotations

from .. import exact
from ..testing import rational_pairs
from ..theory import standard
from ..verifiers import Standard
from .checks import check

RULE = Standard()

check(
    "S1",
    instances=rational_pairs(),
    claimed=lambda i: standard.output_law(*i),
    second=lambda i: exact.output_law(RULE, *i),
    mutated=lambda i: i[1],
    tolerance=0,
)
check(
    "S2",
    instances=rational_pairs(),
    claimed=lambda i: standard.acceptance_rate(*i),
    second=lambda i: exact.acceptance_rate(RULE, *i),
    mutated=lambda i: sum(a * min(1, a / b) if b else a for a, b in zip(*i)),
    tolerance=0,
)
