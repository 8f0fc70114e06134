"""Checks of the speed model's claims against the exact engine."""

from __future__ import annotations

from hypothesis import strategies as st

from .. import exact
from ..models import Tabular
from ..pmf import total_variation
from ..testing import nuclei, rational_pairs
from ..theory import efficiency, standard
from ..verifiers import Nucleus, Standard
from .checks import check

check(
    "S3",
    instances=st.tuples(rational_pairs(), st.integers(1, 5)),
    claimed=lambda i: standard.expected_tokens(1 - total_variation(*i[0]), i[1]),
    second=lambda i: (
        exact.call_law(Standard(), Tabular(i[0][0][None], i[0][1][None]), length=3, block_size=i[1]).tokens_per_call
    ),
    mutated=lambda i: standard.expected_tokens(1 - total_variation(*i[0]), i[1] - 1),
    tolerance=0,
)
check(
    "S4",
    instances=nuclei(),
    claimed=lambda i: efficiency.deviation_floor(
        exact.acceptance_rate(Nucleus(i[2]), i[0], i[1]), total_variation(i[0], i[1])
    ),
    second=lambda i: exact.step_deviation(Nucleus(i[2]), i[0], i[1]),
    mutated=lambda i: total_variation(i[0], i[1]),
    tolerance=0,
)
