"""Seeded samplers and estimators; every estimate carries an interval."""

from .intervals import clopper_pearson, empirical_bernstein, hedged_capital, hoeffding
from .requests import RequestSample, SequenceSample, simulate_iid, simulate_requests, simulate_sequences
from .simulate import StepSample, estimate_deviation, simulate_steps
from .streams import streams

__all__ = [
    "RequestSample",
    "SequenceSample",
    "StepSample",
    "clopper_pearson",
    "empirical_bernstein",
    "estimate_deviation",
    "hedged_capital",
    "hoeffding",
    "simulate_iid",
    "simulate_requests",
    "simulate_sequences",
    "simulate_steps",
    "streams",
]
