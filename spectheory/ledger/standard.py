"""Checks of the standard rule's claims against the exact engine."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from .. import exact
from ..models import Tabular
from ..pmf import total_variation
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
check(
    "S3",
    instances=st.tuples(rational_pairs(), st.integers(1, 5)),
    claimed=lambda i: standard.expected_tokens(1 - total_variation(*i[0]), i[1]),
    second=lambda i: (
        exact.call_law(RULE, Tabular(i[0][0][None], i[0][1][None]), length=3, block_size=i[1]).tokens_per_call
    ),
    mutated=lambda i: standard.expected_tokens(1 - total_variation(*i[0]), i[1] - 1),
    tolerance=0,
)
