"""Cactus: each drafted token is judged against a target bent towards it, within a chi-square budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, align, minimum, namespace, one_hot, to_float, to_numpy, where
from ..errors import UsageError
from ..pmf import residual as standard_residual
from .token import Sweep, TokenRule, capped_ratio


@dataclass(frozen=True)
class Cactus(TokenRule):
    """A(x) = min(1, h_x / q), h_x = min(1, p + sqrt(2 d p (1 - p))); after a rejection the residual (h^(x) - q)_+.

    h^(x) gives x the mass h_x and scales the rest of p down: chi2(h^(x) || p) = 2 d where h_x < 1 (theorem V.cactus). That
    bounds h^(x), not the law that is emitted (V.cactus.emitted). `budget` d >= 0; 0 is the standard rule. Raises
    UsageError otherwise. Source: 2604.04987.
    """

    budget: float
    residual_depends_on_rejected: ClassVar[bool] = True
    SWEEP: ClassVar[Sweep] = ("budget", (0.0, 0.001, 0.01, 0.05, 0.1, 0.3, 1.0))

    def __post_init__(self) -> None:
        if not 0 <= self.budget < math.inf:
            raise UsageError(f"budget must be a finite number >= 0, not {self.budget}")

    def acceptance(self, p: Array, q: Array) -> Array:
        p, q = (to_float(x) for x in align(p, q))
        return capped_ratio(bent(p, self.budget), q)

    def residual(self, p: Array, q: Array, rejected: Array | None = None) -> Array:
        p, q = (to_float(x) for x in align(p, q))
        hot = one_hot(np.asarray(rejected), p) == 1
        h = bent(p, self.budget)
        # a rejected x has h_x < q(x): the residual gives it nothing, so only the scaled rest matters
        scale = namespace(p).max(where(hot, _shrink(p, h), 0 * p), axis=-1, keepdims=True)
        return standard_residual(where(hot, h, scale * p), q)

    def correction(self, p: Array, q: Array) -> Array:
        """sum_x w_x (c_x p - q)_+ / Z(c_x), w = q (1 - A), c = (1 - h) / (1 - p): x enters through the scalar c_x alone.

        (c p - q)_+ lives on the tokens with q / p < c; with these sorted, sums over x and over y are prefix sums. O(V log V).
        """
        p, q = (to_float(x) for x in align(p, q))
        xp = namespace(p)
        rows = [to_numpy(x) for x in (p + 0 * q, q + 0 * p)]
        out = np.empty(rows[0].shape)
        for i in np.ndindex(out.shape[:-1]):
            out[i] = _correction_row(rows[0][i], rows[1][i], self.budget)
        return out if xp is namespace(out) else xp.asarray(out, device=p.device)


def bent(p: Array, budget: float) -> Array:
    """h_x = min(1, p + sqrt(2 d p (1 - p))), (..., V): the mass that the budget can give each token."""
    xp = namespace(p)
    return minimum(p + xp.sqrt(2 * budget * p * (1 - p)), 1)


def _shrink(p: Array, h: Array) -> Array:
    """c_x = (1 - h_x) / (1 - p_x), 1 where p_x = 1."""
    return where(p < 1, (1 - h) / where(p < 1, 1 - p, 1 + 0 * p), 1 + 0 * p)


def _correction_row(p: Any, q: Any, budget: float) -> Any:
    h = bent(p, budget)
    weight = np.maximum(q - h, 0)  # q (1 - A)
    lost = np.flatnonzero(weight > 0)
    if not lost.size:
        return np.zeros_like(p)
    w, c = weight[lost], _shrink(p[lost], h[lost])
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = np.where(p > 0, q / p, np.inf)
    order = np.argsort(edge, kind="stable")
    edges, mass_p, mass_q = edge[order], np.cumsum(p[order]), np.cumsum(q[order])
    below = np.searchsorted(edges, c)  # tokens with q / p < c
    z = np.where(below > 0, c * mass_p[below - 1] - mass_q[below - 1], 0)
    z = np.maximum(z, np.finfo(float).tiny)
    by_scale = np.argsort(-c, kind="stable")  # the x whose c exceeds a token's edge are a prefix of these
    first, second = np.cumsum((w * c / z)[by_scale]), np.cumsum((w / z)[by_scale])
    reach = np.searchsorted(-c[by_scale], -edge)  # number of x with c_x > q / p of the token
    at = np.maximum(reach - 1, 0)
    return np.where(reach > 0, np.maximum(p * first[at] - q * second[at], 0), 0)
