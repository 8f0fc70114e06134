"""Laws over a vocabulary: plain arrays (..., V) of probabilities, in NumPy, torch or Fractions."""

from .divergence import chi_square, entropy, hellinger, kl, overlap, renyi, total_variation
from .nucleus import NUCLEUS_TOL, nucleus, nucleus_is_ambiguous, nucleus_size
from .race import race_agreement, race_joint
from .residual import residual
from .softmax import log_softmax, softmax
from .truncated import truncated_kl, truncated_nucleus_deviation, truncated_total_variation
from .validate import check_ids, validate, validate_logits, validate_pair
from .warp import min_p, top_k, top_p, warp

__all__ = [
    "NUCLEUS_TOL",
    "check_ids",
    "chi_square",
    "entropy",
    "hellinger",
    "kl",
    "log_softmax",
    "min_p",
    "nucleus",
    "nucleus_is_ambiguous",
    "nucleus_size",
    "overlap",
    "race_agreement",
    "race_joint",
    "renyi",
    "residual",
    "softmax",
    "top_k",
    "top_p",
    "total_variation",
    "truncated_kl",
    "truncated_nucleus_deviation",
    "truncated_total_variation",
    "validate",
    "validate_logits",
    "validate_pair",
    "warp",
]
