"""Ground truth by enumeration or quadrature. Knows no theorem: it is what theorems are judged by."""

from .block import BlockLaw, block_law, engine_law, engine_states
from .sequence import (
    CallLaw,
    Marginals,
    call_law,
    sequence_deviation,
    sequence_kl,
    sequence_law,
    target_law,
    token_marginals,
)
from .step import StepLaw, acceptance_rate, best_residual, least_deviation, output_law, step, step_deviation, step_kl

__all__ = [
    "BlockLaw",
    "CallLaw",
    "Marginals",
    "StepLaw",
    "acceptance_rate",
    "best_residual",
    "block_law",
    "call_law",
    "engine_law",
    "engine_states",
    "least_deviation",
    "output_law",
    "sequence_deviation",
    "sequence_kl",
    "sequence_law",
    "step",
    "step_deviation",
    "step_kl",
    "target_law",
    "token_marginals",
]
