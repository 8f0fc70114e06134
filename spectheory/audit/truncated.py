"""Blocks of which only the top tokens and tail sums were recorded: certified intervals, and only for rules that have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import pmf
from ..errors import DataError
from ..protocols import Block
from ..verifiers import Nucleus, Standard
from .plan import Plan


def measure(plan: Plan, block: Block) -> dict[str, Any]:
    """Columns (K, ...) of a truncated block: TV, deviation and acceptance as [lower, upper]; what is unknown is NaN or -1.

    Raises DataError for rules other than standard and NSD and for request settings: both need the whole row.
    """
    rows = block.truncated
    assert rows is not None
    if type(plan.verifier) not in (Standard, Nucleus):
        raise DataError(
            f"truncated rows certify the standard rule and NSD only; {plan.label} needs the whole vocabulary"
        )
    if plan.request:
        raise DataError("truncated rows cannot be filtered again: request settings need the whole vocabulary")
    size = block.size
    low, high = (np.atleast_1d(x)[:size] for x in pmf.truncated_total_variation(rows))
    least, most = _deviation(plan, rows, size)
    unknown, no_token = np.full(size, np.nan), np.full((size, 3), -1)
    nsd = type(plan.verifier) is Nucleus
    out = {
        "tv": low,
        "tv_upper": high,
        # N2: acceptance = 1 - D + Delta, and Delta <= D
        "acceptance": np.clip(1 - high + least, 0, 1),
        "acceptance_upper": np.clip(np.minimum(1 - low + most, 1), 0, 1),
        "deviation": least,
        "deviation_upper": most,
        "kl_target_output": unknown if nsd else np.zeros(size),
        "kl_output_target": unknown if nsd else np.zeros(size),
        "max_ratio": unknown if nsd else np.ones(size),
        "accept_drafted": unknown if nsd else _ratio_drafted(block),
        "accept_lossless": _ratio_drafted(block),
        "pit": unknown,
        "target_top": np.full(size, -1),
        "gained": no_token,
        "gained_mass": np.zeros((size, 3)),
        "lost": no_token,
        "lost_mass": np.zeros((size, 3)),
        "nucleus_size": np.full(size, -1),
        "nucleus_ambiguous": np.zeros(size, bool),
        "nucleus_min": np.full(size, -1),
        "nucleus_max": np.full(size, -1),
        "deviation_min": least,
        "deviation_max": most,
    }
    return out | _sweep(plan, rows, size, low)


def _deviation(plan: Plan, rows: Any, size: int) -> tuple[Any, Any]:
    if type(plan.verifier) is Standard:
        return np.zeros(size), np.zeros(size)
    return tuple(np.atleast_1d(x)[:size] for x in pmf.truncated_nucleus_deviation(rows, plan.top_p))  # type: ignore[return-value]


def _ratio_drafted(block: Block) -> Any:
    """min(1, p/q) of the drafted token where both sides recorded it, else NaN."""
    rows, size = block.truncated, block.size
    assert rows is not None
    at = rows.ids[:size] == block.tokens[:, None]
    p = np.where(at, np.nan_to_num(rows.p[:size]), 0).sum(-1)
    q = np.where(at, np.nan_to_num(rows.q[:size]), 0).sum(-1)
    known = (p > 0) & (q > 0)
    return np.where(known, np.minimum(1, p / np.where(known, q, 1)), np.nan)


def _sweep(plan: Plan, rows: Any, size: int, tv: Any) -> dict[str, Any]:
    """The sweep of truncated rows is not known point by point."""
    if plan.sweep is None:
        return {}
    unknown = np.full((size, len(plan.sweep[1])), np.nan)
    return {"sweep_deviation": unknown, "sweep_acceptance": unknown}
