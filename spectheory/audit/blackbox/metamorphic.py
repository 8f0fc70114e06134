"""Renaming the tokens must rename the law and nothing else, whether or not the verifier is lossless."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .plan import METAMORPHIC, Trial


@dataclass(frozen=True)
class Comparison:
    """TV between two empirical laws, and the `limit` it passes with probability at most alpha if the true laws agree."""

    first: str
    second: str
    tv: float
    limit: float

    @property
    def differs(self) -> bool:
        return self.tv > self.limit


def compare(trials: list[Trial], counts: Mapping[str, Any], alpha: float) -> list[Comparison]:
    """Each pair of METAMORPHIC that was drawn, at level `alpha` each. No call of the verifier is added."""
    shapes = {t.scenario.name: t.scenario.shape for t in trials}
    out = []
    for first, second, order in METAMORPHIC:
        if first in shapes and np.sum(counts[first]) and np.sum(counts[second]):
            a, b = np.asarray(counts[first]), np.asarray(counts[second]).reshape(shapes[second])
            for axis in range(b.ndim):
                b = np.take(b, order, axis=axis)  # cell order[x] of the renamed law is cell x of the first
            tv = 0.5 * float(abs(a / a.sum() - b.ravel() / b.sum()).sum())
            cells = 0.5 * math.sqrt(a.size - 1) + math.sqrt(math.log(2 / alpha) / 2)
            out.append(Comparison(first, second, tv, cells / math.sqrt(a.sum()) + cells / math.sqrt(b.sum())))
    return out
