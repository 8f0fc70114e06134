"""The exact law of one verification step, for any token verifier: p~(y) = d(y) A(y) + sum_x d(x) (1 - A(x)) r(y | x).

d is the law really drafted from (q unless the verifier says otherwise). NumPy; Fractions stay exact; batches over the
leading axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..arrays import Array, maximum, scalar, total
from ..pmf import kl, residual, total_variation, validate_pair
from ..protocols import TokenVerifier
from ..verifiers.token import JOINT_CAP, correction, drafted


@dataclass(frozen=True)
class StepLaw:
    """`output` (..., V), `acceptance_rate` (...), `deviation` = TV(output, p) (...), and both divergences in nats (...)."""

    output: Array
    acceptance_rate: Array
    deviation: Array
    kl_target_output: Array
    kl_output_target: Array


def step(verifier: TokenVerifier, p: Array, q: Array) -> StepLaw:
    """Everything about one step of `verifier` on laws `p`, `q` (..., V). Raises DataError if they are not laws."""
    p, q = validate_pair(p, q)
    law = _output(verifier, p, q)
    return StepLaw(law, _accepted(verifier, p, q), total_variation(law, p), kl(p, law), kl(law, p))


def output_law(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    """Law (..., V) of the token that one step emits. Raises DataError if `p`, `q` (..., V) are not laws."""
    return _output(verifier, *validate_pair(p, q))


def acceptance_rate(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    """P(the drafted token is accepted), (...). Raises DataError if `p`, `q` (..., V) are not laws."""
    return _accepted(verifier, *validate_pair(p, q))


def step_deviation(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    """TV(output law, p), (...). Raises DataError if `p`, `q` (..., V) are not laws."""
    p, q = validate_pair(p, q)
    return total_variation(_output(verifier, p, q), p)


def step_kl(verifier: TokenVerifier, p: Array, q: Array) -> tuple[Array, Array]:
    """(KL(p || output), KL(output || p)) in nats, (...) each. Raises DataError if `p`, `q` (..., V) are not laws."""
    law = step(verifier, p, q)
    return law.kl_target_output, law.kl_output_target


def best_residual(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    """A residual law (..., V) of least TV for the verifier's own acceptance: proportional to (p - d A)_+.

    Optimal for ANY acceptance rule, but only over residuals that ignore the rejected token, which loses nothing.
    Source: Yin et al. 2411.00841.
    """
    p, q = validate_pair(p, q)
    return residual(p, drafted(verifier, p, q) * verifier.acceptance(p, q))


def least_deviation(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    """The least TV (...) that any residual can reach with the verifier's acceptance: that of `best_residual`."""
    p, q = validate_pair(p, q)
    kept = drafted(verifier, p, q) * verifier.acceptance(p, q)
    law = kept + (1 - total(kept, keepdims=True)) * residual(p, kept)
    return total_variation(law, p)


def _output(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    joint: Any = getattr(verifier, "joint", None)
    if joint is not None and not _too_large(verifier, p):  # shared randomness: the emitted column of (drafted, emitted)
        return joint(p, q).sum(axis=-2)
    law = drafted(verifier, p, q) * verifier.acceptance(p, q) + correction(verifier, p, q)
    return maximum(law, 0)


def _too_large(verifier: TokenVerifier, p: Array) -> bool:
    """Past the cap of joint laws a verifier's own closed-form correction takes their place."""
    return bool(p.shape[-1] > JOINT_CAP and getattr(verifier, "correction", None) is not None)


def _accepted(verifier: TokenVerifier, p: Array, q: Array) -> Array:
    return scalar(total(drafted(verifier, p, q) * verifier.acceptance(p, q)))
