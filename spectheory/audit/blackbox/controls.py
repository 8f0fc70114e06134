"""The audit audits itself: known-good and known-broken verifiers go through the same tests, each time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...montecarlo.multinomial import deviation_interval
from ...results import Interval
from .faults import law_under, name_faults
from .plan import trial
from .scenario import sample
from .specimens import known

# The controls have an error budget of their own, small enough that a failed control means a defect, not bad luck.
ALPHA = MISS = 1e-6
GOOD = ("G0", "G1", "G3", "B1", "B0")
BROKEN = ("M1", "M2", "M3", "M5", "M7", "M22", "J2", "C1")
DETECT = {"B0": 0.3}  # block verification is slow in Python: a coarser control


@dataclass(frozen=True)
class Control:
    """`tv` is the exact deviation, which `interval` must cover; `rejected` must equal `broken`; `named` is the best fit."""

    specimen: str
    fault: str
    broken: bool
    rejected: bool
    draws: int
    tv: float
    interval: Interval
    named: str

    @property
    def ok(self) -> bool:
        return self.rejected == self.broken and self.tv in self.interval


def controls(seed: int, beat: Callable[[], None]) -> list[Control]:
    """Run every control at its designed sample size."""
    everything = known()
    out: list[Control] = []
    for name in (*GOOD, *BROKEN):
        case = everything[name]
        null, law = case.scenario.law(), np.asarray(law_under(case.rule, case.scenario))
        tv = 0.5 * float(abs(law - null).sum())
        planned = trial(case.scenario, DETECT.get(name, 0.1) if case.lossless else tv, ALPHA, MISS)
        tally = sample(case.subject, case.scenario, planned.design.n, np.random.default_rng([seed, len(out)]), beat)
        found = deviation_interval(tally.counts, null, ALPHA, planned.design.method)
        fits = name_faults([planned], {case.scenario.name: tally.counts}) if found.rejected else []
        out.append(
            Control(
                name,
                case.fault,
                not case.lossless,
                found.rejected,
                planned.design.n,
                0.0 if case.lossless else tv,
                found.interval,
                " or ".join(f.fault for f in fits),
            )
        )
    return out
