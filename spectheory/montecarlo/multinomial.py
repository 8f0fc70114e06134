"""How far is an unknown law from a known one? A confidence interval for TV from counts, and the sample size it needs.

Two methods, both valid at every sample size. "events": an exact binomial (Clopper-Pearson) bound for each of the
2^N - 2 events over N cells, at level alpha / (2^N - 2) each; TV is the largest excess of an event. "radius": the
empirical law lies within sqrt((N - 1) / n) / 2 + sqrt(ln(1 / alpha) / (2 n)) of the true one (mean, then McDiarmid).
In both, "TV is not 0" is the same statement as "the lower end is positive", so a rejection comes with its bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy.special import bdtrc, betaincinv

from ..errors import UsageError
from ..results import Interval

Method = Literal["events", "radius"]
# Beyond this many cells the events are too many to enumerate and their union bound is the weaker one anyway.
EVENT_CELLS = 10
# A law that has cells without mass gives this share of alpha to the event "one of them was hit" (method "radius").
IMPOSSIBLE_SHARE = 0.01


@dataclass(frozen=True)
class Design:
    """`n` draws find any law at TV >= `deviation` from the claimed one with probability >= 1 - `miss`.

    The claimed law itself is rejected with probability at most `alpha`.
    """

    n: int
    deviation: float
    alpha: float
    miss: float
    method: Method


@dataclass(frozen=True)
class Deviation:
    """TV between the law that was drawn from and the claimed one: an interval, and the event (N,) that shows it best."""

    interval: Interval
    witness: Any
    observed: float
    claimed: float

    @property
    def rejected(self) -> bool:
        return self.interval.lower > 0


def design(law: Any, deviation: float, alpha: float, miss: float) -> Design:
    """The cheaper of the two methods that detects `deviation` from `law` (N,). Raises UsageError for rates outside (0, 1)."""
    law = np.asarray(law, dtype=np.float64)
    for name, x in (("deviation", deviation), ("false-alarm rate", alpha), ("miss rate", miss)):
        if not 0 < x < 1:
            raise UsageError(f"the {name} must lie strictly between 0 and 1, not {x}")
    by_radius = math.ceil(
        ((0.5 * math.sqrt(len(law) - 1) + _deviate(_alpha(law, alpha)) + _deviate(miss)) / deviation) ** 2
    )
    best = Design(by_radius, deviation, alpha, miss, "radius")
    if len(law) <= EVENT_CELLS:
        n = _events_sample_size(law, deviation, alpha, miss, by_radius)
        if n <= by_radius:
            best = Design(n, deviation, alpha, miss, "events")
    return best


def deviation_interval(counts: Any, law: Any, alpha: float, method: Method | None = None) -> Deviation:
    """Two-sided interval for TV(true law, `law`) from `counts` (N,): covers with probability at least 1 - `alpha`.

    `method` None takes "events" up to EVENT_CELLS cells. Source: Clopper and Pearson 1934; McDiarmid 1989.
    """
    counts, law = np.asarray(counts), np.asarray(law, dtype=np.float64)
    n = int(counts.sum())
    if n == 0:
        nothing = np.zeros(len(law), dtype=bool)
        return Deviation(Interval(0.0, None, 1.0, "statistical", alpha, "no draws"), nothing, 0.0, 0.0)
    if (method or ("events" if len(law) <= EVENT_CELLS else "radius")) == "events":
        lower, upper, witness, source = _by_events(counts, law, n, alpha)
    else:
        lower, upper, witness, source = _by_radius(counts, law, n, alpha)
    tv = 0.5 * float(abs(counts / n - law).sum())
    interval = Interval(min(lower, 1.0), min(max(tv, lower), upper), upper, "statistical", alpha, source)
    return Deviation(interval, witness, float(counts[witness].sum() / n), float(law[witness].sum()))


def rejects(counts: Any, law: Any, alpha: float, method: Method) -> Any:
    """For counts (..., N) of equal totals: would `deviation_interval` reject the law? (...) booleans, fast."""
    counts, law = np.asarray(counts), np.asarray(law, dtype=np.float64)
    n = int(counts.reshape(-1, len(law))[0].sum())
    if method == "events":
        sets = _events(len(law))
        return (counts @ sets.T >= _critical(n, sets @ law, alpha / len(sets))).any(axis=-1)
    beyond = 0.5 * abs(counts / n - law).sum(axis=-1) > _radius(n, law, alpha)
    return beyond | (counts[..., law == 0] > 0).any(axis=-1)


@lru_cache(maxsize=16)
def _events(size: int) -> Any:
    """Every event but the empty and the sure one, (2^N - 2, N) of 0 and 1; a law of one cell has none."""
    return (np.arange(1, 2**size - 1)[:, None] >> np.arange(size) & 1).astype(np.int64).reshape(-1, size)


def _deviate(probability: float) -> float:
    """Hoeffding and McDiarmid: a mean of n bounded by 1 exceeds its expectation by this / sqrt(n) with that probability."""
    return math.sqrt(math.log(1 / probability) / 2)


def _alpha(law: Any, alpha: float) -> float:
    return alpha * (1 - IMPOSSIBLE_SHARE) if (law == 0).any() else alpha


def _radius(n: int, law: Any, alpha: float) -> float:
    return (0.5 * math.sqrt(len(law) - 1) + _deviate(_alpha(law, alpha))) / math.sqrt(n)


def _by_events(counts: Any, law: Any, n: int, alpha: float) -> tuple[float, float, Any, str]:
    sets = _events(len(law))
    if not len(sets):
        return 0.0, 0.0, np.ones(len(law), dtype=bool), "one token"
    hits, claimed = sets @ counts, sets @ law
    below = _lower(hits, n, alpha / len(sets))
    above = 1 - below[::-1]  # the complement of event i is event -1 - i
    best = int(np.argmax(below - claimed))
    lower, upper = max(0.0, float(below[best] - claimed[best])), float(np.max(above - claimed))
    return lower, min(1.0, max(upper, lower)), sets[best].astype(bool), "exact binomial bounds of every event"


def _by_radius(counts: Any, law: Any, n: int, alpha: float) -> tuple[float, float, Any, str]:
    tv, radius, impossible = 0.5 * float(abs(counts / n - law).sum()), _radius(n, law, alpha), law == 0
    lower, witness = max(0.0, tv - radius), counts / n > law
    hit = int(counts[impossible].sum())
    if hit:
        certain = float(_lower(np.array([hit]), n, alpha * IMPOSSIBLE_SHARE)[0])
        if certain > lower:
            lower, witness = certain, impossible
    return lower, max(lower, min(1.0, tv + radius)), witness, "L1 concentration"


def _lower(hits: Any, n: int, alpha: float) -> Any:
    """One-sided Clopper-Pearson lower bounds of success probabilities."""
    return np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1, alpha), 0.0)


def _critical(n: int, p: Any, alpha: float) -> Any:
    """The least k with P(Binomial(n, p) >= k) <= alpha, where the lower bound passes p; n + 1 if there is none."""
    low, high = np.zeros(p.shape, dtype=np.int64), np.full(p.shape, n + 1, dtype=np.int64)
    p = np.clip(p, 0.0, 1.0)
    while (high - low > 1).any():  # invariant: the tail at `low` is above alpha, at `high` it is not
        middle = (low + high) // 2
        small = np.where(middle > n, 0.0, bdtrc(np.minimum(middle, n) - 1, n, p)) <= alpha
        low, high = np.where(small, low, middle), np.where(small, middle, high)
    return high


def _events_sample_size(law: Any, deviation: float, alpha: float, miss: float, cap: int) -> int:
    """A sample size up to `cap` at which every event that can exceed its claim by `deviation` is found; else cap + 1."""
    sets = _events(len(law))
    if not len(sets):
        return 1
    claimed = np.unique(sets @ law)
    claimed = claimed[claimed + deviation <= 1]  # no law can exceed the others by that much
    if not len(claimed):
        return 1

    def enough(n: int) -> bool:
        critical = _critical(n, claimed, alpha / len(sets))
        return bool(
            (bdtrc(critical - 1, n, claimed + deviation)[critical <= n] >= 1 - miss).all() and (critical <= n).all()
        )

    low, high = 0, 16
    while high < cap and not enough(high):
        low, high = high, 2 * high
    while high - low > max(1, high // 1000):  # power is not quite monotone in n, so what is returned is always checked
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high if enough(high) else cap + 1
