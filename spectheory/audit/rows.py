"""Everything the audit knows of one block: one record a drafted position, keyed by (shard, row)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import pmf
from ..arrays import log0, one_hot
from ..errors import DataError, UsageError
from ..exact.step import StepLaw, acceptance_rate, step, step_deviation
from ..protocols import Block
from ..verifiers import Nucleus, Standard
from ..verifiers.token import capped_ratio
from . import fused, truncated
from .plan import Plan

# How many of the tokens that gained or lost most are kept a row.
TOP = 3
Record = dict[str, Any]


def measure(plan: Plan, block: Block, source: Mapping[str, Any], warped: bool = False) -> Record:
    """Columns (K, ...) of one block. `source` is the manifest: `eos_ids`, `tv_floor`, `draft_mode`.

    `warped`: the block's laws already follow the request's settings.

    Raises DataError for rows that are not what they claim, UsageError for a rule that breaks its own contract.
    """
    if block.size == 0:
        raise DataError("the block has no drafts (K = 0)")
    out = _identity(block, source)
    if block.truncated is not None:
        return {**out, **truncated.measure(plan, block)}
    p, q, declared = laws(plan, block, warped)
    if source.get("draft_mode") == "greedy":  # the law really drafted from
        q = one_hot(block.tokens, q)
    columns = _nsd_columns if type(plan.verifier) in (Standard, Nucleus) else _step_columns
    out |= columns(plan, p, q, block.tokens)
    out["accept_lossless"] = capped_ratio(p, q)[np.arange(block.size), block.tokens]
    out["pit"] = _pit(block, declared) if _sampled(source, declared) else np.full(block.size, np.nan)
    out |= _model_columns(plan, p, q, float(source.get("tv_floor") or 0.0), out)
    return out | _sweep(plan, p, q, out["tv"])


def laws(plan: Plan, block: Block, warped: bool) -> tuple[Any, Any, Any]:
    """p (K, V), q (K, V) under the request's settings, and q as recorded (None where only the filtered one is known).

    The bonus row is no verification step. A drafted token must have q > 0 as recorded; the audit's own settings may
    remove it afterwards. Raises DataError naming the row.
    """
    if block.p is None or block.q is None:
        raise DataError("the block has no laws p and q")
    size, shapes = block.size, (np.shape(block.p), np.shape(block.q))
    if len(shapes[0]) != 2 or shapes[0][0] < size or shapes[1] != (size, shapes[0][1]):
        raise DataError(f"K = {size} drafts need p (K+1, V) and q (K, V), not {shapes[0]} and {shapes[1]}")
    p, q = pmf.validate_pair(block.p[:size], block.q)
    filtered = bool(plan.request) and warped
    pmf.check_ids(block.tokens, p.shape[-1], "drafted token", None if filtered else q)
    if not plan.request or warped:
        return p, q, None if filtered else q
    logits = log0(p) if block.logits is None else np.asarray(block.logits[:size], dtype=np.float64)
    return pmf.warp(logits, **plan.request), pmf.warp(log0(q), **plan.request), q


def _sampled(source: Mapping[str, Any], declared: Any) -> bool:
    """Whether the drafts claim to be draws from the declared q, so that the claim can be tested."""
    return declared is not None and source.get("draft_mode") in (None, "sample")


def _identity(block: Block, source: Mapping[str, Any]) -> Record:
    info, size = block.info, block.size
    ends = np.isin(block.tokens, list(source.get("eos_ids") or []))
    return {
        "shard": np.full(size, str(info["file"])),
        "row": int(info["rows"][0]) + np.arange(size),
        "request": np.full(size, str(info["request"])),
        "block": np.full(size, int(info["block"])),
        "position": np.arange(size),
        "token": np.asarray(block.tokens, dtype=np.int64),
        "context": np.full(size, str(info.get("context", ""))),
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
        raise UsageError(
            f"rule {plan.label}: at position {i} what it emits sums to {mass[i]:.6g}, not 1: no residual law"
        )
    return law


def _step_columns(plan: Plan, p: Any, q: Any, tokens: Any) -> Record:
    """Any token rule, by the exact engine."""
    accept = np.asarray(plan.verifier.acceptance(p, q), dtype=np.float64)
    law = _checked_step(plan, p, q, accept)
    size, unclear = (
        np.atleast_1d(pmf.nucleus_size(p, plan.top_p)),
        np.atleast_1d(pmf.nucleus_is_ambiguous(p, plan.top_p)),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(p > 0, law.output / p, np.where(law.output > 0, np.inf, 1.0))
    return {
        **_both("tv", np.atleast_1d(pmf.total_variation(p, q))),
        **_both("acceptance", np.minimum(np.atleast_1d(law.acceptance_rate), 1.0)),
        **_both("deviation", np.atleast_1d(law.deviation)),
        "kl_target_output": np.atleast_1d(law.kl_target_output),
        "kl_output_target": np.atleast_1d(law.kl_output_target),
        "max_ratio": ratios.max(-1),
        "nucleus_size": size,
        "nucleus_ambiguous": unclear,
        "accept_drafted": accept[np.arange(len(p)), tokens],
        **_moved(p, law.output - p),
    }


def _nsd_columns(plan: Plan, p: Any, q: Any, tokens: Any) -> Record:
    """NSD, and the standard rule as its top_p = 0, by the fused pass; `nucleus_size` is then at the plan's top_p."""
    rows = range(len(p))
    figures = [fused.from_laws(p[i], q[i], float(getattr(plan.verifier, "top_p", 0))) for i in rows]
    sized = (
        figures
        if isinstance(plan.verifier, Nucleus)
        else [fused.from_laws(p[i], q[i], plan.top_p, False) for i in rows]
    )
    shift = np.stack([fused.nsd_output(p[i], q[i], figures[i]) - p[i] for i in rows])
    return {
        **_both("tv", np.array([f.tv for f in figures])),
        **_both("acceptance", np.array([f.acceptance for f in figures])),
        **_both("deviation", np.array([f.deviation for f in figures])),
        "kl_target_output": np.array([f.kl_target_output for f in figures]),
        "kl_output_target": np.array([f.kl_output_target for f in figures]),
        "max_ratio": np.array([f.max_ratio for f in figures]),
        "nucleus_size": np.array([f.nucleus_size for f in sized]),
        "nucleus_ambiguous": np.array([f.ambiguous for f in sized]),
        "accept_drafted": np.array([fused.accepts(p[i], q[i], int(tokens[i]), figures[i]) for i in rows]),
        **_moved(p, shift),
    }


def _both(name: str, value: Any) -> Record:
    """A figure known exactly: its lower and upper value coincide."""
    return {name: value, f"{name}_upper": value}


def _moved(p: Any, shift: Any) -> Record:
    """The tokens that gained and lost most, and the target's favourite."""
    gained, lost = _largest(shift), _largest(-shift)
    return {
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


def _model_columns(plan: Plan, p: Any, q: Any, tv_floor: float, known: Record) -> Record:
    """What rounding of at most `tv_floor` in TV can have hidden: nucleus sizes, and NSD's deviation.

    If TV(p, p*) <= t, the size of p*'s nucleus lies between p's at top_p - t and at top_p + t: a set's mass moves by at
    most t, and the nucleus is the smallest set that reaches its threshold. Between those two, tokens within a factor
    e^(8t) of the last one inside may change places; NSD's excess over the sets so found is widened by t.
    """
    size, deviation = known["nucleus_size"], known["deviation"]
    out = {"nucleus_min": size, "nucleus_max": size, "deviation_min": deviation, "deviation_max": deviation}
    if tv_floor == 0:
        return out
    if isinstance(plan.verifier, Nucleus) and plan.top_p > 0:
        bands = [_band(p[i], q[i], plan.top_p, tv_floor) for i in range(len(p))]
        low, high, least, most = (np.array(c) for c in zip(*bands))
        out["deviation_min"] = np.clip(np.minimum(least, deviation) - tv_floor, 0, 1)
        out["deviation_max"] = np.clip(np.maximum(most, deviation) + tv_floor, 0, 1)
    elif plan.top_p > 0:
        low, high = (
            np.array([fused.from_laws(row, row, t, False).nucleus_size for row in p])
            for t in _thresholds(plan.top_p, tv_floor)
        )
    else:
        return out
    return {**out, "nucleus_min": np.minimum(low, size), "nucleus_max": np.maximum(high, size)}


def _thresholds(top_p: float, tv_floor: float) -> tuple[float, float]:
    return max(top_p - tv_floor, 1e-12), min(top_p + tv_floor, 1.0)


def _band(p: Any, q: Any, top_p: float, tv_floor: float) -> tuple[int, int, float, float]:
    """(least size, largest size, least excess, largest excess) of one row over the nuclei that rounding allows."""
    small, large = (fused.from_laws(p, q, t, False) for t in _thresholds(top_p, tv_floor))
    over, slack = np.maximum(q - p, 0), float(np.exp(8 * tv_floor))
    sure, possible = p > small.edge * slack, p * slack >= large.edge
    return small.nucleus_size, large.nucleus_size, float(over[sure].sum()), float(over[possible].sum())


def _sweep(plan: Plan, p: Any, q: Any, tv: Any) -> Record:
    """Deviation and acceptance (K, S) at each value of the rule's parameter."""
    if plan.sweep is None:
        return {}
    if type(plan.verifier) is Nucleus:  # theorems N1 and N2: both follow from the excess inside the nucleus
        excess = np.array([[fused.from_laws(a, b, t, False).deviation for t in plan.sweep[1]] for a, b in zip(p, q)])
        return {"sweep_deviation": excess, "sweep_acceptance": np.minimum(1 - tv[:, None] + excess, 1.0)}
    variants = plan.variants()
    rates = [np.minimum(np.atleast_1d(acceptance_rate(v, p, q)), 1.0) for v in variants]
    return {
        "sweep_deviation": np.stack([np.atleast_1d(step_deviation(v, p, q)) for v in variants], -1),
        "sweep_acceptance": np.stack(rates, -1),
    }


def _pit(block: Block, q: Any) -> Any:
    """Randomised probability integral transform (K,) of the drafted tokens under the declared q.

    In order of descending probability, ties by index: u = mass before the token + v q(token), v uniform. If the drafts
    follow q, given the past, these are independent uniforms whatever the context. v is seeded by where the row lies.
    """
    info = block.info
    key = f"{info['file']}/{info['rows'][0]}"
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
