"""The audit's operating characteristic, simulated: how often each specimen is rejected, its counts drawn from its exact law."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...montecarlo import clopper_pearson
from ...montecarlo.multinomial import design, rejects
from .faults import law_under
from .specimens import Known, known

FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)


def operating_characteristic(
    runs: int = 1000, alpha: float = 1e-3, miss: float = 1e-4, seed: int = 0, fractions: Iterable[float] = FRACTIONS
) -> dict[str, Any]:
    """For each specimen, its design and how many of `runs` simulated tests reject it, at fractions of its sample size.

    A broken specimen is designed for at its own exact TV, a lossless one at 0.05. Rates carry 99.9 % intervals.
    """
    rows = [
        _curve(name, case, runs, alpha, miss, np.random.default_rng([seed, i]), tuple(fractions))
        for i, (name, case) in enumerate(known().items())
    ]
    return {"runs": runs, "alpha": alpha, "miss": miss, "specimens": rows}


def _curve(
    name: str, case: Known, runs: int, alpha: float, miss: float, rng: np.random.Generator, fractions: tuple[float, ...]
) -> dict[str, Any]:
    null, law = case.scenario.law(), np.asarray(law_under(case.rule, case.scenario))
    tv = 0.5 * float(abs(law - null).sum())
    planned = design(null, 0.05 if case.lossless else tv, alpha, miss)
    points = []
    for fraction in fractions:
        n = max(1, round(fraction * planned.n))
        counts = rng.multinomial(n, law / law.sum(), size=runs)
        rejected = int(rejects(counts, null, alpha, planned.method).sum())
        rate = clopper_pearson(rejected, runs, 1e-3)
        points.append({"n": n, "rejected": rejected, "rate": rejected / runs, "lower": rate.lower, "upper": rate.upper})
    return {
        "id": name,
        "fault": case.fault,
        "lossless": case.lossless,
        "tv": 0.0 if case.lossless else tv,
        "n": planned.n,
        "method": planned.method,
        "points": points,
    }
