"""Seeded samplers and estimators; every estimate carries an interval."""

from .intervals import clopper_pearson, empirical_bernstein, hedged_capital, hoeffding
from .simulate import StepSample, estimate_deviation, simulate_steps
from .streams import streams

__all__ = [
    "StepSample",
    "clopper_pearson",
    "empirical_bernstein",
    "estimate_deviation",
    "hedged_capital",
    "hoeffding",
    "simulate_steps",
    "streams",
]
