"""Ground truth by enumeration or quadrature. Knows no theorem: it is what theorems are judged by."""

from .step import StepLaw, acceptance_rate, best_residual, least_deviation, output_law, step, step_deviation, step_kl

__all__ = [
    "StepLaw",
    "acceptance_rate",
    "best_residual",
    "least_deviation",
    "output_law",
    "step",
    "step_deviation",
    "step_kl",
]
