"""Published examples and recorded blocks for regret budgets (A).

A recorded block gives each position's match and regret (exact Fractions of the stored logits). A request is the whole
recording, starting at that block; its positions in a row are a trace, and their frequencies an i.i.d. model.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as D
from fractions import Fraction as F
from typing import Any

import numpy as np

from ..models.positions import Positions, recorded_positions
from ..models.tabular import Tabular
from ..protocols import Block
from ..testing import RegretRequest
from ..verifiers.regret_budget import SLACK, RegretBudget
from . import asd, asd_request  # noqa: F401 - the checks that these examples join
from .checks import attach
from .rows import coarse, recorded_blocks

# The published defaults and their exploratory setting, with a small budget so that it binds on eight blocks.
RULES = (
    RegretBudget(F(8), F(1, 4), 2, "suffix"),
    RegretBudget(F(12), F(1, 2), 2, "suffix"),
    RegretBudget(F(3, 2), F(1), 1, "normalized"),
    RegretBudget(F(1), F(1), 2, "suffix"),
)


def scores(block: Block) -> tuple[tuple[bool, ...], tuple[F, ...]]:
    """(matches (K,), regrets (K,)) of a recorded block, from its target logits."""
    logits, at = np.asarray(block.logits)[: block.size], np.arange(block.size)
    regrets = logits.max(axis=1) - logits[at, block.tokens]
    matches = logits.argmax(axis=1) == block.tokens
    return tuple(bool(m) for m in matches), tuple(F(float(r)) for r in regrets)


def number(block: Block) -> int:
    return next(n for n, other in enumerate(recorded_blocks()) if other is block)


def rule(block: Block) -> RegretBudget:
    return RULES[number(block) % len(RULES)]


def request(block: Block) -> RegretRequest:
    first = number(block)
    blocks = recorded_blocks()[first:] + recorded_blocks()[:first]
    return RegretRequest(rule(block), tuple(scores(b) for b in blocks))


def trace(block: Block) -> Any:
    """(rule, (matches (T,), regrets (T,), K)): the recording's positions in a row."""
    matches, regrets = zip(*request(block).blocks)
    return rule(block), (sum(matches, ()), sum(regrets, ()), block.size)


def positions(block: Block) -> Any:
    """(rule, i.i.d. model with the recording's frequencies, regrets in quarters of a nat)."""
    _, (matches, regrets, size) = trace(block)
    quarters = np.array([0.0 if m else round(4 * float(r)) / 4 for m, r in zip(matches, regrets)])
    model = recorded_positions(np.array(matches), quarters, size)
    return rule(block), Positions(model.match, {F(r): mass for r, mass in model.regrets.items()}, size)


def decoded(block: Block) -> Any:
    """(model, rule, K) to decode: the block's first three positions as rows of a Markov model over three tokens."""
    p, q = (x.astype(np.float64) for x in coarse(np.asarray(block.p)[:3], np.asarray(block.q)[:3], 3))
    p = (p + 1e-6) / (p + 1e-6).sum(axis=1, keepdims=True)  # the claims want full support
    return Tabular(p, q), RegretBudget(1.0, 2.0, 1 + number(block) % 2, ("suffix", "normalized")[number(block) % 2]), 2


def raised(budget: Any, gate: Any, cap: int, *regrets: int | None) -> Any:
    """A rule and a fixed trace at K = 2 (None: a match), in the form that the checks of A6 take."""
    matches = tuple(r is None for r in regrets)
    return [(RegretBudget(budget, gate, cap, "suffix"), (matches, tuple(F(r or 0) for r in regrets), 2))]


def block(*regrets: int | None) -> Any:
    return tuple(r is None for r in regrets), tuple(F(r or 0) for r in regrets)


on_request: Callable[[Block], Any] = request
for claim in ("A1", "A2", "A3", "A3.block", "A6.strict"):
    attach(claim, blocks=on_request)
attach("A1.slack", golden=[((F(1), 3), 1 + 3 * SLACK)])
attach("A1.signed", golden=[((F(1), 3), 1 + SLACK)])
attach("A4", blocks=lambda b: (request(b), number(b)))
attach("A4.tie", golden=[((1, 1, block(0)), None)])
attach("A5", blocks=lambda b: (rule(b), scores(b)))
attach("A6", blocks=lambda b: (rule(b), scores(b), number(b) % 3, 1))
attach("A6.budget", golden=[(raised(2, F(3, 2), 2, 3, 1, 1, None), [2])])
attach("A6.gate", golden=[(raised(3, 1, 2, 3, 1, 1, None), [2])])
attach("A6.cap", golden=[(raised(2, 1, 1, 1, 1, None, 1, None), [2])])
for claim in ("A7", "A7.bound", "A7.perplexity", "A7.tv"):
    attach(claim, blocks=decoded)
for claim in ("A8", "A8.gain", "A8.count"):
    attach(claim, blocks=trace)

PUBLISHED = (
    RegretBudget(F(4), F(1, 2), 2, "suffix"),
    Positions(F(3, 5), {F(1, 2): F(1, 2), F(1): F(3, 10), F(3): F(1, 5)}, 4),
)
SMALL = (RegretBudget(F(3, 2), F(1), 1, "suffix"), Positions(F(0), {F(1): F(99, 100), F(1, 100): F(1, 100)}, 1))
attach("A9", golden=[(PUBLISHED, D("8.025753"))], blocks=positions)
attach("A9.lower", golden=[(PUBLISHED, D("6.228201"))], blocks=positions)
attach("A9.survival", golden=[(PUBLISHED, None)])
attach("A9.permanent", golden=[(SMALL, D("2.52"))], blocks=positions)
GREEDY = RegretBudget(F(1), F(1), 1, "suffix")
attach(
    "A10",
    golden=[((GREEDY, [block(None, None, None, 1), block(1, None, None, None)]), 7)],
    blocks=lambda b: (rule(b), list(request(b).blocks[:4])),
)
attach("A10.ratio", golden=[(4, F(1, 4))])
