"""Seeded samplers and estimators; every estimate carries an interval."""

from .intervals import clopper_pearson, empirical_bernstein, hedged_capital, hoeffding
from .multinomial import Design, Deviation, design, deviation_interval
from .races import Walks, rows_as_laws, simulate_chain, simulate_ranks, simulate_standard, simulate_tree
from .requests import RequestSample, SequenceSample, simulate_iid, simulate_requests, simulate_sequences
from .simulate import StepSample, estimate_deviation, simulate_steps
from .streams import streams

__all__ = [
    "Design",
    "Deviation",
    "RequestSample",
    "SequenceSample",
    "StepSample",
    "Walks",
    "clopper_pearson",
    "design",
    "deviation_interval",
    "empirical_bernstein",
    "estimate_deviation",
    "hedged_capital",
    "hoeffding",
    "rows_as_laws",
    "simulate_chain",
    "simulate_iid",
    "simulate_ranks",
    "simulate_requests",
    "simulate_sequences",
    "simulate_standard",
    "simulate_steps",
    "simulate_tree",
    "streams",
]
