"""Checks of NSD's claims against the exact engine."""

from __future__ import annotations

from .. import exact
from ..testing import nuclei
from ..theory import nsd
from ..verifiers import Nucleus
from .checks import check

check(
    "N1",
    instances=nuclei(),
    claimed=lambda i: nsd.step_deviation(*i),
    second=lambda i: exact.step_deviation(Nucleus(i[2]), i[0], i[1]),
    mutated=lambda i: nsd.step_deviation(i[1], i[0], i[2]),
    tolerance=0,
)
