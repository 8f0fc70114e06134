"""Everything the audit knows of one block: one record a drafted position, keyed by (shard, row)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import pmf
from ..arrays import log0
from ..errors import DataError, UsageError
from ..exact.step import StepLaw, step
from ..protocols import Block
from ..verifiers import Nucleus, Standard
from . import fused, truncated
from .plan import Plan

# How many of the tokens that gained or lost most are kept a row.
TOP = 3
Record = dict[str, Any]


def measure(plan: Plan, block: Block, source: Mapping[str, Any]) -> Record:
    """Columns (K, ...) of one block. `source` is the manifest: `eos_ids`, `tv_floor`, `draft_mode`.

    Raises DataError for rows that are not what they claim, UsageError for a rule that breaks its own contract.
    """
    if block.size == 0:
        raise DataError("the block has no drafts (K = 0)")
    out = _identity(block, source)
    if block.truncated is not None:
        return {**out, **truncated.measure(plan, block)}
    p, q, declared = laws(plan, block)
    law = fused.step(plan.verifier, p, q) if type(plan.verifier) in (Standard, Nucleus) else None
    accept = np.asarray(plan.verifier.acceptance(p, q), dtype=np.float64)
    out |= _step_columns(plan, p, q, accept, law or _checked_step(plan, p, q, accept))
    out["accept_drafted"] = accept[np.arange(block.size), block.tokens]
    out["pit"] = _pit(block, declared)
    out |= nucleus_columns(p, q, plan.top_p, float(source.get("tv_floor") or 0.0))
    return out | _sweep(plan, p, q, out["tv"])


def laws(plan: Plan, block: Block) -> tuple[Any, Any, Any]:
    """p (K, V), q (K, V) under the request's settings, and q as recorded. The bonus row is no verification step."""
    if block.p is None or block.q is None:
        raise DataError("the block has no laws p and q")
    size = block.size
    if np.ndim(block.p) != 2 or len(block.p) != size + 1 or np.shape(block.q) != (size, np.shape(block.p)[1]):
        raise DataError(f"K = {size} drafts need p (K+1, V) and q (K, V), not {np.shape(block.p)} and {np.shape(block.q)}")
    p, q = pmf.validate_pair(block.p[:size], block.q)
    pmf.check_ids(block.tokens, p.shape[-1], "drafted token", q)
    if not plan.request:
        return p, q, q
    logits = log0(p) if block.logits is None else np.asarray(block.logits[:size], dtype=np.float64)
    return pmf.warp(logits, **plan.request), pmf.warp(log0(q), **plan.request), q


def _identity(block: Block, source: Mapping[str, Any]) -> Record:
    info, size = block.info, block.size
    ends = np.isin(block.tokens, list(source.get("eos_ids") or []))
    return {
        "shard": np.full(size, str(info.get("shard", ""))),
        "row": int(info.get("row", 0)) + np.arange(size),
        "request": np.full(size, str(info.get("request", ""))),
        "block": np.full(size, int(info.get("block", 0))),
        "position": np.arange(size),
        "token": np.asarray(block.tokens, dtype=np.int64),
        "ends": ends,
        "after_eos": np.cumsum(ends) - ends > 0,
    }


def _checked_step(plan: Plan, p: Any, q: Any, accept: Any) -> StepLaw:
    """The exact step of any token rule; what the rule returns must be probabilities."""
    bad = ~((accept >= 0) & (accept <= 1 + 1e-9))
    if bad.any():
        i, x = np.argwhere(bad)[0]
        raise UsageError(f"rule {plan.label}: acceptance {accept[i, x]} at position {i}, token {x} is no probability")
    law = step(plan.verifier, p, q)
    mass = law.output.sum(-1)
    if not (abs(mass - 1) < 1e-6).all():
        i = int(np.argmax(~(abs(mass - 1) < 1e-6)))
        raise UsageError(f"rule {plan.label}: at position {i} what it emits sums to {mass[i]:.6g}, not 1: no residual law")
    return law


def _step_columns(plan: Plan, p: Any, q: Any, accept: Any, law: StepLaw) -> Record:
    tv = np.atleast_1d(pmf.total_variation(p, q))
    deviation, rate = np.atleast_1d(law.deviation), np.minimum(np.atleast_1d(law.acceptance_rate), 1.0)
    shift = law.output - p
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(p > 0, law.output / p, np.where(law.output > 0, np.inf, 1.0))
    gained, lost = _largest(shift), _largest(-shift)
    return {
        "tv": tv,
        "tv_upper": tv,
        "acceptance": rate,
        "acceptance_upper": rate,
        "deviation": deviation,
        "deviation_upper": deviation,
        "kl_target_output": np.atleast_1d(law.kl_target_output),
        "kl_output_target": np.atleast_1d(law.kl_output_target),
        "max_ratio": ratios.max(-1),
        # P(reject) + TV(output, p) >= TV(p, q) for every rule (Yin et al. 2411.00841): what a rule wastes.
        "gap": np.maximum(deviation + (1 - rate) - tv, 0),
        "target_top": p.argmax(-1),
        "gained": gained,
        "gained_mass": np.maximum(np.take_along_axis(shift, gained, -1), 0),
        "lost": lost,
        "lost_mass": np.maximum(-np.take_along_axis(shift, lost, -1), 0),
    }


def _largest(x: Any) -> Any:
    """Ids (K, TOP) of the largest entries, largest first; -1 pads small vocabularies."""
    k = min(TOP, x.shape[-1])
    ids = np.argpartition(-x, k - 1, axis=-1)[..., :k]
    ids = np.take_along_axis(ids, np.argsort(-np.take_along_axis(x, ids, -1), -1, kind="stable"), -1)
    return np.pad(ids, ((0, 0), (0, TOP - k)), mode="edge")


def nucleus_columns(p: Any, q: Any, top_p: float, tv_floor: float) -> Record:
    """Nucleus size, whether rounding decides it, and what it can be under rounding of at most `tv_floor` in TV.

    If TV(p, p*) <= t, the size of p*'s nucleus lies between p's at top_p - t and at top_p + t: a set's mass moves by at
    most t, and the nucleus is the smallest set that reaches its threshold.
    """
    size, unclear = fused.nucleus_size(p, top_p)
    if top_p in (0, 1) or tv_floor == 0:
        low, high = size, size
    else:
        low = np.minimum(size, fused.nucleus_size(p, max(top_p - tv_floor, 1e-12))[0])
        high = np.maximum(size, fused.nucleus_size(p, min(top_p + tv_floor, 1.0))[0])
    return {"nucleus_size": size, "nucleus_ambiguous": unclear, "nucleus_min": low, "nucleus_max": high}


def _sweep(plan: Plan, p: Any, q: Any, tv: Any) -> Record:
    """Deviation and acceptance (K, S) at each value of the rule's parameter."""
    if plan.sweep is None:
        return {}
    if type(plan.verifier) is Nucleus:  # theorems N1 and N2: both follow from the excess inside the nucleus
        excess = np.stack([fused.nucleus_excess(p, q, t) for t in plan.sweep[1]], -1)
        return {"sweep_deviation": excess, "sweep_acceptance": np.minimum(1 - tv[:, None] + excess, 1.0)}
    steps = [step(v, p, q) for v in plan.variants()]
    return {
        "sweep_deviation": np.stack([np.atleast_1d(s.deviation) for s in steps], -1),
        "sweep_acceptance": np.stack([np.minimum(np.atleast_1d(s.acceptance_rate), 1.0) for s in steps], -1),
    }


def _pit(block: Block, q: Any) -> Any:
    """Randomised probability integral transform (K,) of the drafted tokens under the declared q.

    In order of descending probability, ties by index: u = mass before the token + v q(token), v uniform. If the drafts
    follow q, given the past, these are independent uniforms whatever the context. v is seeded by where the row lies.
    """
    info = block.info
    key = f"{info.get('request', '')}/{info.get('block', 0)}/{info.get('shard', '')}/{info.get('row', 0)}"
    v = np.random.default_rng(zlib.crc32(key.encode())).random(block.size)
    i = np.arange(block.size)
    own = q[i, block.tokens]
    ids = np.arange(q.shape[-1])
    before = (q > own[:, None]) | ((q == own[:, None]) & (ids < block.tokens[:, None]))
    return np.clip(np.where(before, q, 0).sum(-1) + v * own, 0, 1)


def join_columns(records: Sequence[Record]) -> Record:
    """Rows of many blocks one after another."""
    return {k: np.concatenate([r[k] for r in records]) for k in records[0]} if records else {}


def in_order(rows: Record) -> Record:
    """Rows by (shard, row): the one order in which a report is made, however the rows were gathered."""
    if not rows:
        return rows
    order = np.lexsort((rows["row"], rows["shard"]))
    return {k: v[order] for k, v in rows.items()}


