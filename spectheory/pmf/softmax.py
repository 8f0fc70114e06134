"""Logits to laws."""

from __future__ import annotations

import math

from ..arrays import Array, argmax, namespace, one_hot, to_float, to_law
from ..errors import UsageError
from .validate import validate_logits


def softmax(logits: Array, temperature: float = 1.0) -> Array:
    """Law (..., V) in float64 of `logits` (..., V) at `temperature`; 0 is one-hot at the argmax (lowest index on ties).

    Raises DataError for NaN, +inf or all -inf rows and UsageError for a negative or non-finite temperature.
    """
    z, temperature = _scaled(logits, temperature)
    if temperature == 0:
        return one_hot(argmax(z), z)
    xp = namespace(z)
    e = xp.exp(z)
    return e / xp.sum(e, axis=-1, keepdims=True)


def log_softmax(logits: Array, temperature: float = 1.0) -> Array:
    """ln softmax (..., V) in nats without forming the law: no log of an underflowed 0. Raises as `softmax`."""
    z, temperature = _scaled(logits, temperature)
    xp = namespace(z)
    if temperature == 0:
        hot = one_hot(argmax(z), z)
        return xp.where(hot == 1, xp.zeros_like(z), xp.full_like(z, -float("inf")))
    return z - xp.log(xp.sum(xp.exp(z), axis=-1, keepdims=True))


def _scaled(logits: Array, temperature: float) -> tuple[Array, float]:
    """Checked logits in float64, shifted to maximum 0 and divided by the temperature (shift first: no overflow)."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise UsageError(f"temperature must be a finite number >= 0, not {temperature}")
    z = to_float(to_law(validate_logits(logits)))
    z = z - namespace(z).max(z, axis=-1, keepdims=True)
    # Below the smallest normal number a division may overflow to -inf where it should; 0 / T stays 0.
    return (z if temperature in (0, 1) else z / max(temperature, 1e-300)), temperature
