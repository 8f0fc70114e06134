"""The i.i.d. model of greedy drafting: every position matches the target's argmax or has a regret drawn from one law."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import DataError, UsageError


@dataclass(frozen=True)
class Positions:
    """Blocks of `block_size` K independent positions: P(match) = `match`, else the regret follows `regrets`.

    `regrets` maps a regret in nats (0 is a tie at a higher index, inf a token of mass 0) to its probability given a
    mismatch. Exact where `match` and the probabilities are Fractions. Raises DataError unless these are laws.
    """

    match: Any
    regrets: Mapping[Any, Any]
    block_size: int

    def __post_init__(self) -> None:
        if not 0 <= self.match <= 1:
            raise DataError(f"the match probability must be in [0, 1], not {self.match}")
        for regret, mass in self.regrets.items():
            if not regret >= 0 or not mass >= 0:
                raise DataError(f"regret {regret} has probability {mass}: both must be numbers >= 0")
        if self.match < 1 and abs(sum(self.regrets.values()) - 1) > (0 if self.exact else 1e-9):
            raise DataError(f"the regret law sums to {float(sum(self.regrets.values()))}, not 1")
        if self.block_size < 1:
            raise UsageError(f"block_size must be >= 1, not {self.block_size}")

    @property
    def exact(self) -> bool:
        """True if every probability is rational."""
        return all(isinstance(x, Fraction | int) for x in (self.match, *self.regrets.values()))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Array, Array]:
        """Positions of any `shape`: matches bool and regrets float, 0 at a match."""
        values = np.array([0.0, *(float(r) for r in self.regrets)])
        masses = [self.match, *((1 - self.match) * m for m in self.regrets.values())]
        cuts = np.cumsum(np.array([float(m) for m in masses]))
        which = np.searchsorted(cuts, rng.random(shape) * cuts[-1], side="right")
        which = np.minimum(
            which, np.flatnonzero(np.diff(cuts, prepend=0.0))[-1]
        )  # a product may round up to the last cut
        return which == 0, values[which]


def recorded_positions(matches: Array, regrets: Array, block_size: int) -> Positions:
    """The i.i.d. model with the match rate and the regret law of recorded positions (n,): what it leaves out is memory.

    Raises DataError for no positions or a NaN or negative regret.
    """
    matches, regrets = np.asarray(matches, dtype=bool), np.asarray(regrets, dtype=np.float64)
    if matches.size == 0 or matches.shape != regrets.shape:
        raise DataError(f"no positions, or shapes {matches.shape} and {regrets.shape} differ")
    values, counts = np.unique(regrets[~matches], return_counts=True)
    if values.size and not (values[0] >= 0 and not math.isnan(values[-1])):
        raise DataError("a recorded regret is negative or NaN")
    law = {float(v): float(c / counts.sum()) for v, c in zip(values, counts)}
    return Positions(float(matches.mean()), law, block_size)
