"""What is tested, decided before any call: the scenarios, their sample sizes, and how they share one error budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UsageError
from ...models import Tabular
from ...montecarlo.multinomial import Design, design
from .interface import Subject
from .scenario import Scenario

# Two over- and two under-weighted tokens on purpose: a residual of one token hides residual faults.
C4 = ((0.4, 0.2, 0.3, 0.1), (0.1, 0.5, 0.1, 0.3))
RELABEL = (3, 0, 1, 2)  # reverses the order of the two tokens that the residual can draw
# Context-free rows hide a bonus drawn from the wrong row.
CONTEXT = (
    ((0.7, 0.2, 0.1), (0.1, 0.6, 0.3), (0.3, 0.3, 0.4)),
    ((0.5, 0.3, 0.2), (0.3, 0.4, 0.3), (0.2, 0.5, 0.3)),
)
# Pairs of scenarios of which the second renames the tokens of the first: token x is called order[x].
METAMORPHIC = (("step, C4", "step, C4 relabelled", RELABEL), ("context, block of 2", "context, permuted", (1, 2, 0)))
LOOKS = 5  # of a sequential test, each twice as long as the one before


@dataclass(frozen=True)
class Request:
    """What the user asks for: the smallest TV worth detecting and both error rates, `false_alarm` for the whole audit."""

    deviation: float = 0.05
    false_alarm: float = 1e-3
    miss: float = 1e-4
    sequential: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("deviation", "false_alarm", "miss"):
            if not 0 < getattr(self, name) < 1:
                raise UsageError(
                    f"{name.replace('_', '-')} must lie strictly between 0 and 1, not {getattr(self, name)}"
                )


@dataclass(frozen=True)
class Trial:
    """A scenario with its design. `looks` are the draws after which it may stop, each at level `design.alpha`.

    A union bound makes the looks valid together, so that stopping at any of them, for any reason, is allowed.
    """

    scenario: Scenario
    design: Design
    looks: tuple[int, ...]


def plan(subject: Subject, request: Request) -> list[Trial]:
    """The tests of an audit; their false alarms sum to at most `request.false_alarm`, whatever depends on whatever."""
    chosen = scenarios(request.seed, drafts=subject.draft is not None)
    alpha = request.false_alarm / (len(chosen) + len(METAMORPHIC))
    return [trial(s, request.deviation, alpha, request.miss, request.sequential) for s in chosen]


def trial(scenario: Scenario, deviation: float, alpha: float, miss: float, sequential: bool = False) -> Trial:
    """One scenario at its own level `alpha`, split over its looks if it is sequential."""
    looks = LOOKS if sequential else 1
    found = design(scenario.law(), deviation, alpha / looks, miss)
    return Trial(scenario, found, tuple(max(1, -(-found.n // 2**i)) for i in reversed(range(looks))))


def scenarios(seed: int = 0, drafts: bool = False) -> list[Scenario]:
    """Every scenario, the random ones drawn from `seed`; `drafts` adds the contract that the engine's drafts follow q."""
    c4, context = Tabular([C4[0]], [C4[1]]), Tabular(*CONTEXT)
    rng = np.random.default_rng([seed, 7])
    wide = asymmetric_pair(rng, 6)
    rows = Tabular(*_rows(rng, 3))
    out = [
        Scenario("step, C4", c4, 1, 1, "the law of one step"),
        Scenario("step, C4 relabelled", relabelled(c4, RELABEL), 1, 1, "a law that depends on the order of ids"),
        Scenario("step, random pair", wide, 1, 1, "the law of one step, six tokens"),
        Scenario("two calls", c4, 1, 1, "randomness reused from call to call", "calls"),
        Scenario("block of 2, C4", c4, 2, 3, "the joint law of a block; coins reused within it"),
        Scenario("context, bonus", context, 1, 2, "rows mixed up: a bonus or a residual of another position"),
        Scenario("context, block of 2", rows, 2, 3, "the joint law of a block whose rows differ"),
        Scenario("context, permuted", relabelled(rows, METAMORPHIC[1][2]), 2, 3, "the same, tokens and rows permuted"),
    ]
    if drafts:
        out.append(Scenario("drafts", c4, 1, 1, "drafts that do not follow the declared q", "drafts"))
    return out


def asymmetric_pair(rng: np.random.Generator, size: int) -> Tabular:
    """A random pair of laws with at least two over- and two under-weighted tokens and TV of at least 0.2."""
    while True:
        p, q = rng.dirichlet(np.full(size, 2.0), size=2)
        if (
            (p > q).sum() >= 2
            and (q > p).sum() >= 2
            and np.maximum(p - q, 0).sum() >= 0.2
            and min(p.min(), q.min()) >= 0.02
        ):
            return Tabular(p[None], q[None])


def relabelled(model: Tabular, order: tuple[int, ...]) -> Tabular:
    """The same model with token x called order[x], its contexts (order 0 or 1) along with it."""
    to = np.asarray(order)
    back = np.argsort(to)
    rows = back if len(model.target) > 1 else np.array([0])
    start = int(to[model.initial]) if len(model.target) > 1 else 0
    return Tabular(model.target[rows][:, back], model.draft[rows][:, back], initial=start)


def _rows(rng: np.random.Generator, size: int) -> tuple[Any, Any]:
    """Order-1 tables whose rows differ from each other and from the draft's, no entry too small to be met."""
    while True:
        p, q = rng.dirichlet(np.full(size, 2.0), size=(2, size))
        apart = min(np.maximum(p[i] - p[j], 0).sum() for i in range(size) for j in range(i))
        if apart >= 0.2 and np.maximum(p - q, 0).sum(axis=1).min() >= 0.15 and min(p.min(), q.min()) >= 0.05:
            return p, q
