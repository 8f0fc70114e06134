"""Statistical asserts in threes: the assert, the smallest effect it detects, the sample size it needs.

Both error rates are stated: an assert on a true claim fails with probability at most `false_alarm`; on a claim that is
wrong by at least the detectable effect it passes with probability at most `miss`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

FALSE_ALARM = 1e-9
MISS = 1e-9


def _radius(n: float, size: int, alpha: float) -> float:
    """With probability >= 1 - alpha the empirical law of n draws over V tokens is this close in TV (mean plus McDiarmid)."""
    return 0.5 * math.sqrt(size / n) + math.sqrt(math.log(1 / alpha) / (2 * n))


def assert_law(draws: Any, law: Any, false_alarm: float = FALSE_ALARM) -> None:
    """Assert that the integer `draws` (n,) come from `law` (V,), in total variation.

    Fails (AssertionError) on a true claim with probability at most `false_alarm`.
    """
    draws, law = np.asarray(draws), np.asarray(law, dtype=np.float64)
    counts = np.bincount(draws, minlength=len(law))
    massless = np.flatnonzero((counts > 0) & (np.pad(law, (0, len(counts) - len(law))) == 0))
    if massless.size:
        raise AssertionError(f"drew token {int(massless[0])}, which has no mass under the claimed law")
    tv = 0.5 * float(abs(counts / len(draws) - law).sum())
    limit = _radius(len(draws), int((law > 0).sum()), false_alarm)
    if tv > limit:
        raise AssertionError(
            f"empirical law is {tv:.6g} in TV from the claimed one, more than {limit:.6g} (n = {len(draws)}, false alarm {false_alarm:g})"
        )


def detectable_deviation(n: int, vocab_size: int, false_alarm: float = FALSE_ALARM, miss: float = MISS) -> float:
    """The TV from which `assert_law` with `n` draws fails with probability at least 1 - `miss`."""
    return _radius(n, vocab_size, false_alarm) + _radius(n, vocab_size, miss)


def sample_size_for(deviation: float, vocab_size: int, false_alarm: float = FALSE_ALARM, miss: float = MISS) -> int:
    """The number of draws at which `assert_law` detects `deviation` in TV with probability at least 1 - `miss`."""
    return math.ceil((detectable_deviation(1, vocab_size, false_alarm, miss) / deviation) ** 2)


def assert_rate(successes: int, trials: int, rate: float, false_alarm: float = FALSE_ALARM) -> None:
    """Assert that `successes` of `trials` have probability `rate`, by the exact binomial (Clopper-Pearson) interval.

    Fails (AssertionError) on a true claim with probability at most `false_alarm`.
    """
    from ..montecarlo import clopper_pearson

    interval = clopper_pearson(successes, trials, false_alarm)
    if rate not in interval:
        raise AssertionError(f"{successes} of {trials} is not a rate of {rate:.6g}: {interval}")


def detectable_rate_deviation(trials: int, false_alarm: float = FALSE_ALARM, miss: float = MISS) -> float:
    """How far a rate must be off for `assert_rate` with `trials` to fail with probability at least 1 - `miss` (Hoeffding).

    The Clopper-Pearson interval lies inside Hoeffding's, as each of its ends inverts an exact tail that Hoeffding bounds.
    """
    return math.sqrt(math.log(2 / false_alarm) / (2 * trials)) + math.sqrt(math.log(1 / miss) / (2 * trials))


def trials_for(deviation: float, false_alarm: float = FALSE_ALARM, miss: float = MISS) -> int:
    """The number of trials at which `assert_rate` detects a rate that is off by `deviation`, with probability 1 - `miss`."""
    return math.ceil((detectable_rate_deviation(1, false_alarm, miss) / deviation) ** 2)
