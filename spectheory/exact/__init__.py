"""Ground truth by enumeration or quadrature. Knows no theorem: it is what theorems are judged by."""

from .race import (
    count_law,
    draft_laws,
    index_entropy,
    index_law,
    index_mean,
    index_success,
    log_mean,
    mean,
    rank_entropy,
    rank_head,
    rank_joint,
    rank_law,
)
from .step import StepLaw, acceptance_rate, best_residual, least_deviation, output_law, step, step_deviation, step_kl

__all__ = [
    "StepLaw",
    "acceptance_rate",
    "best_residual",
    "count_law",
    "draft_laws",
    "index_entropy",
    "index_law",
    "index_mean",
    "index_success",
    "least_deviation",
    "log_mean",
    "mean",
    "output_law",
    "rank_entropy",
    "rank_head",
    "rank_joint",
    "rank_law",
    "step",
    "step_deviation",
    "step_kl",
]
