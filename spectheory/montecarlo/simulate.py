"""One verification step, simulated for whole batches of rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, is_rational
from ..pmf import validate_pair
from ..protocols import TokenVerifier, depends_on_rejected
from ..results import Interval
from ..verifiers.token import drafted
from .streams import streams


@dataclass(frozen=True)
class StepSample:
    """What was drawn: `drafted` and `emitted` ids (n, rows) and which drafts were `accepted` (n, rows)."""

    drafted: Array
    emitted: Array
    accepted: Array


def simulate_steps(
    verifier: TokenVerifier, p: Array, q: Array, n: int, seed: int = 0, coins: dict[str, Array] | None = None
) -> StepSample:
    """Run one step `n` times on each row of `p`, `q` (rows, V) or (V,).

    Uniforms come from the named streams draft, accept and residual of `seed`, or from `coins` (the same names, arrays
    (n, rows) in [0, 1)). Acceptance is u < A(x), strictly. Shared randomness (`joint`) is sampled from the joint law.
    Raises DataError if the rows are not laws.
    """
    p, q = (np.atleast_2d(x.astype(np.float64) if is_rational(x) else x) for x in validate_pair(p, q))
    p, q = np.broadcast_arrays(p, q)
    rows = p.shape[0]
    names = ("draft", "accept", "residual")
    u = coins or {name: rng.random((n, rows)) for name, rng in streams(seed, *names).items()}
    if getattr(verifier, "joint", None) is not None:
        return _joint_steps(verifier, p, q, u["draft"])
    x = _draw(np.asarray(drafted(verifier, p, q)), u["draft"])
    row = np.arange(rows)
    accepted = u["accept"] < np.asarray(verifier.acceptance(p, q))[row, x]
    if depends_on_rejected(verifier):
        y = _dependent_residuals(verifier, p, q, x, accepted, u["residual"])
    else:
        y = _draw(np.asarray(verifier.residual(p, q)), u["residual"])
    return StepSample(x, np.where(accepted, x, y), accepted)


def _draw(laws: Any, u: Any) -> Any:
    """Inverse-CDF draws (n, rows) from laws (rows, V): the first token whose cumulative mass exceeds u."""
    out = np.empty(u.shape, dtype=np.int64)
    for r, law in enumerate(laws):
        cumulative = np.cumsum(law)
        last = int(np.flatnonzero(law)[-1])
        out[:, r] = np.minimum(np.searchsorted(cumulative, u[:, r] * cumulative[-1], side="right"), last)
    return out


def _dependent_residuals(verifier: Any, p: Any, q: Any, x: Any, accepted: Any, u: Any) -> Any:
    """Residual draws of a rule whose residual depends on the rejected token: one residual law a (row, token) rejected."""
    y = x.copy()
    for r in range(p.shape[0]):
        for token in np.unique(x[~accepted[:, r], r]):
            which = (x[:, r] == token) & ~accepted[:, r]
            law = np.asarray(verifier.residual(p[r], q[r], int(token)))
            y[which, r] = _draw(law[None], u[which, r][:, None])[:, 0]
    return y


def _joint_steps(verifier: Any, p: Any, q: Any, u: Any) -> StepSample:
    """Rules with shared randomness: draw the pair (drafted, emitted) from the joint law; emitted = drafted counts accepted."""
    pair = np.empty(u.shape, dtype=np.int64)
    for r in range(p.shape[0]):
        pair[:, r] = _draw(np.asarray(verifier.joint(p[r], q[r]), dtype=np.float64).reshape(1, -1), u[:, r : r + 1])[
            :, 0
        ]
    x, y = np.divmod(pair, p.shape[1])
    return StepSample(x, y, x == y)


def estimate_deviation(sample: StepSample, p: Array, alpha: float = 1e-3) -> list[Interval]:
    """For each row, a two-sided interval for TV(output law, p) from the emitted tokens.

    The empirical law is within eps of the true one in TV with probability >= 1 - `alpha`,
    eps = min over the two classical bounds: sqrt(V / n) / 2 + sqrt(ln(1 / alpha) / (2 n)) (mean plus McDiarmid).
    """
    p = np.atleast_2d(p)
    n, out = sample.emitted.shape[0], []
    for r in range(sample.emitted.shape[1]):
        counts = np.bincount(sample.emitted[:, r], minlength=p.shape[1])
        tv = 0.5 * float(abs(counts / n - p[r]).sum())
        eps = 0.5 * np.sqrt(p.shape[1] / n) + np.sqrt(np.log(1 / alpha) / (2 * n))
        out.append(Interval(max(0.0, tv - eps), tv, min(1.0, tv + eps), "statistical", alpha, "L1 concentration"))
    return out
