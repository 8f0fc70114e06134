"""How fast recorded requests use up the budget, beside the exact i.i.d. law with the same match rate and regrets (A9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..exact import regret
from ..models.positions import Positions, recorded_positions
from ..theory import asd_request as theory
from ..verifiers.regret_budget import RegretBudget
from .recorded import Played, refused

STEP_SHARE = 256  # the lattice: this many steps in the budget


def exhaustion(rule: RegretBudget, groups: Sequence[Sequence[Played]]) -> dict[str, Any]:
    """E[N] of the i.i.d. model (certified) with its Wald bounds, the recorded first refusals, and the curve over blocks.

    The model keeps the recorded match rate and regret law and forgets everything else: a gap to the record is memory.
    With an infinite or zero budget there is nothing to exhaust: only the recorded curve comes back.
    """
    size = len(groups[0][0].row.tokens)
    matches = np.concatenate([p.row.matches for g in groups for p in g])
    regrets = np.concatenate([p.row.regrets for g in groups for p in g])
    positions = recorded_positions(matches, regrets, size)
    blocks = max(len(g) for g in groups)
    first = [next((i + 1 for i, p in enumerate(g) if refused(rule, p)), None) for g in groups]
    curve = _recorded(groups, first, blocks)
    curve["budget"] = float(rule.budget)
    found: dict[str, Any] = {"first_refusals": first, "match_rate": float(positions.match), "curve": curve}
    mean, square, largest = (float(x) for x in regret.block_moments(rule, positions))
    found["mean_charge"] = mean
    if 0 < rule.budget < math.inf and mean > 0:
        step = float(rule.budget) / STEP_SHARE
        found["expected_blocks"] = regret.expected_blocks(rule, positions, step)
        found["bounds"] = [
            float(theory.exhaustion_lower(rule, mean)),
            float(theory.exhaustion_upper(rule, mean, square, largest)),
        ]
        curve |= _model(rule, positions, blocks, step)
    return found


def _recorded(groups: Sequence[Sequence[Played]], first: Sequence[int | None], blocks: int) -> dict[str, Any]:
    """Mean spend and share of requests without refusal after n = 0..blocks blocks, over the requests that long."""
    spent, unrefused = [0.0], [1.0]
    for n in range(1, blocks + 1):
        long = [(g, f) for g, f in zip(groups, first) if len(g) >= n]
        spent.append(float(np.mean([float(g[n - 1].after.spent) for g, _ in long])))
        unrefused.append(float(np.mean([f is None or f > n for _, f in long])))
    return {"spent": spent, "unrefused": unrefused}


def _model(rule: RegretBudget, positions: Positions, blocks: int, step: float) -> dict[str, Any]:
    """The i.i.d. model's survival, certified from both roundings; its spend and tokens per call, their middle."""
    up, down = (regret.request(rule, positions, blocks, step, way) for way in ("up", "down"))
    means = [run.spend @ (np.arange(run.spend.shape[1]) * float(run.grid.unit)) for run in (up, down)]
    return {
        "model_spent": [float(x) for x in (means[0] + means[1]) / 2],
        # Sorted and capped: where both are 1 they may differ by a rounding.
        "model_unrefused": [sorted(min(1.0, float(x)) for x in pair) for pair in zip(up.survival, down.survival)],
        "tokens_per_call": [float(1 + x) for x in (up.accepted + down.accepted) / 2],
    }
