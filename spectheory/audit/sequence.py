"""What recorded rows say of whole sequences: every bound, the composition, an estimate, and the price of speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array, one_hot, ratio
from ..errors import DataError, UsageError
from ..models import Tabular
from ..montecarlo.estimate import SequenceEstimate, estimate_sequence
from ..results import AuditReport, Interval
from ..theory.bounds import chain_bounds
from ..theory.chain import exogenous, lumped
from ..theory.efficiency import speedup_of
from ..theory.standard import speedup_cap
from ..verifiers.token import step_weights
from .horizon import powers
from .plan import Plan, plan
from .rows import laws
from .source import Source, open_source

# Paths of the estimate: they cost little here, as all rows are one context.
PATHS = 4096
SHOWN = {
    "coupling": "coupling",
    "union": "union",
    "uniform": "uniform",
    "pinsker": "Pinsker",
    "bretagnolle_huber": "B.-Huber",
    "hellinger": "Hellinger",
    "composition": "compos.",
    "joint": "joint",
}
MEANING = (
    "contexts: each token meets one of the recorded rows, drawn at random whatever was generated before. Exact for that "
    "process; a text whose contexts follow from its own tokens can drift more or less (docs/theory/sequence.md)."
)
Lumps = tuple[Array, Array, Array]


def add(
    report: AuditReport,
    verifier: Any,
    source: Any = None,
    *,
    horizon: int,
    request: Mapping[str, Any] | None = None,
    block: int | None = None,
    cost_ratio: float = 0.05,
    verification_cost: float = 1.0,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """`report` with its sequence section: 1, 2, 4, ..., `horizon` tokens in blocks of `block` (default: the report's).

    Reads `source` once more (a one-shot iterable will not do). Raises UsageError for a rule that is no token rule or
    sizes below 1, DataError if no row has full laws (truncated rows know no log-ratio).
    """
    one = plan(verifier, request, block, True)
    lengths, size = powers(horizon), block or report.extra.get("block") or 4
    if size < 1:
        raise UsageError(f"block_size must be >= 1, not {size}")
    variants = [verifier, *one.variants()] if one.sweep else [verifier]
    rows, tv = _collect(one, variants, open_source(source, one.request), progress)
    weights = rows[0]
    curve = [_point(weights, t, size) for t in lengths]
    estimate = _estimate(weights, lengths, size, seed)
    for point, interval in zip(curve, estimate.deviation):
        point["estimate"] = interval
    prices = _prices(one, rows[1:], horizon, size, cost_ratio, verification_cost)
    data = {"block": size, "rows": len(weights), "tv": tv, "curve": curve, "trade_off": prices}
    extra = dict(report.extra)
    extra["sections"] = [*extra.get("sections", []), *_sections(one, curve, prices, size, horizon)]
    extra["figures"] = [*extra.get("figures", []), *_figures(one, curve, prices, size, horizon)]
    return replace(report, summary={**report.summary, "sequence": data}, extra=extra)


def _collect(
    one: Plan, variants: list[Any], source: Source, progress: Callable[[int, int], None] | None
) -> tuple[list[list[Lumps]], float]:
    """The weights of every drafted row under every variant, tokens of equal ratio merged; and the mean TV(p, q)."""
    rows: list[list[Lumps]] = [[] for _ in variants]
    gaps: list[float] = []
    for p, q in _pairs(one, source, progress):
        gaps += [float(x) for x in abs(p - q).sum(axis=1) / 2]
        for k, variant in enumerate(variants):
            accepted, corrected = (np.asarray(x, dtype=np.float64) for x in step_weights(variant, p, q))
            rows[k] += [lumped(*row) for row in zip(p, accepted, corrected)]
    if not gaps:
        raise DataError(f"{source.name}: no row with full laws, which the sequence section needs")
    return rows, float(np.mean(gaps))


def _pairs(one: Plan, source: Source, progress: Callable[[int, int], None] | None) -> Iterator[tuple[Array, Array]]:
    """Laws (K, V) of each block that has them; bad blocks are in the report's errors already."""
    for shard in range(len(source.shards)):
        for block in source.blocks(shard):
            if block.truncated is not None or block.size == 0:
                continue
            try:
                p, q, _ = laws(one, block, source.warped)
            except DataError:
                continue
            yield p, one_hot(block.tokens, q) if source.manifest.get("draft_mode") == "greedy" else q
        if progress is not None:
            progress(shard + 1, len(source.shards))


def _point(weights: list[Lumps], length: int, block_size: int) -> dict[str, Any]:
    return {"length": length, "bounds": chain_bounds(exogenous(weights, length=length, block_size=block_size))}


@dataclass(frozen=True)
class _Weights:
    """A stand-in rule over the merged tokens of a chain: accepts and corrects with their weights."""

    accepted: Array
    corrected: Array

    def drafted(self, p: Array, q: Array) -> Array:
        return q

    def acceptance(self, p: Array, q: Array) -> Array:
        return ratio(self.accepted + 0 * q, q, 1)

    def residual(self, p: Array, q: Array) -> Array:
        return p

    def correction(self, p: Array, q: Array) -> Array:
        return self.corrected + 0 * q


def _estimate(weights: list[Lumps], lengths: list[int], block_size: int, seed: int) -> SequenceEstimate:
    """Q9 on the same process, as a second route to what the bounds enclose."""
    chain = exogenous(weights, length=1, block_size=block_size)
    accepted, corrected = chain.accepted / chain.out.sum(), chain.corrected / chain.out.sum()
    model = Tabular(chain.p / chain.p.sum(), accepted + corrected)
    rule = _Weights(accepted, corrected)
    return estimate_sequence(
        rule, model, horizons=lengths, block_size=block_size, paths=PATHS, alpha=0.05, batch=256, seed=seed
    )


def _prices(
    one: Plan, rows: list[list[Lumps]], horizon: int, block_size: int, cost_ratio: float, verification_cost: float
) -> dict[str, Any]:
    """Deviation of one token and of `horizon` tokens against speed-up, along the rule's sweep."""
    out: dict[str, Any] = {
        "parameter": one.sweep[0] if one.sweep else None,
        "cost_ratio": cost_ratio,
        "verification_cost": verification_cost,
        "cap": speedup_cap(block_size, cost_ratio, verification_cost),
        "points": [],
    }
    for value, weights in zip(one.sweep[1] if one.sweep else [], rows):
        chain = exogenous(weights, length=horizon, block_size=block_size)
        first = exogenous(weights, length=1, block_size=block_size)
        beta = min(1.0, float(chain.accepted.sum()))
        out["points"].append(
            {
                "value": float(value),
                "acceptance": beta,
                "speedup": speedup_of(beta, block_size, cost_ratio, verification_cost),
                "deviation": float(abs(first.out - first.p).sum() / 2),
                "sequence": chain_bounds(chain)["best"],
            }
        )
    return out


def _sections(
    one: Plan, curve: list[dict[str, Any]], prices: dict[str, Any], block_size: int, horizon: int
) -> list[dict[str, Any]]:
    rows = [
        [p["length"], p["bounds"]["best"].lower, p["estimate"].estimate, p["bounds"]["best"].upper]
        + [p["bounds"][name].upper for name in SHOWN]
        for p in curve
    ]
    last: Interval = curve[-1]["estimate"]
    notes = [
        f"certified: TV over T tokens in blocks of K = {block_size} lies in [lower, upper]; behind them the single "
        "upper bounds, not clipped at 1.",
        f"estimate: {PATHS} paths; at T = {horizon} it lies in [{last.lower:.4g}, {last.upper:.4g}] with 95 % confidence over all T.",
        MEANING,
    ]
    columns = ["T", "lower", "estimate", "upper", *SHOWN.values()]
    out = [{"title": "Deviation of whole sequences", "columns": columns, "rows": rows, "notes": notes}]
    if prices["points"]:
        out.append(
            {
                "title": f"What speed costs: sweep over {prices['parameter']}",
                "columns": [
                    prices["parameter"],
                    "acceptance",
                    "speed-up",
                    "deviation, 1 token",
                    f"upper, {horizon} tokens",
                ],
                "rows": [
                    [p["value"], p["acceptance"], p["speedup"], p["deviation"], p["sequence"].upper]
                    for p in prices["points"]
                ],
                "notes": [
                    f"speed-up over autoregressive decoding: K = {block_size}, a draft costs {prices['cost_ratio']:g} and a "
                    f"verification {prices['verification_cost']:g} target steps; no rule exceeds {prices['cap']:.4g}."
                ],
            }
        )
    return out


def _figures(
    one: Plan, curve: list[dict[str, Any]], prices: dict[str, Any], block_size: int, horizon: int
) -> list[dict[str, Any]]:
    bounds = [p["bounds"] for p in curve]
    estimates = [p["estimate"] for p in curve]
    data = {
        "lengths": [p["length"] for p in curve],
        "upper": {name.replace("_", "-"): [min(b[name].upper, 1e9) for b in bounds] for name in SHOWN},
        "lower": {"largest lower bound": [b["best"].lower for b in bounds]},
        "estimate": {
            "middle": [e.estimate for e in estimates],
            "low": [e.lower for e in estimates],
            "high": [e.upper for e in estimates],
        },
    }
    out = [{"module": "sequence", "function": "horizon", "name": "horizon", "data": data}]
    if prices["points"]:
        points = prices["points"]
        common = {"speedup": [p["speedup"] for p in points], "values": [p["value"] for p in points]}
        curves = [
            {"label": "1 token", "deviation": [p["deviation"] for p in points], **common},
            {"label": f"{horizon} tokens, at most", "deviation": [p["sequence"].upper for p in points], **common},
            {"label": f"{horizon} tokens, at least", "deviation": [p["sequence"].lower for p in points], **common},
        ]
        frame = {"parameter": prices["parameter"], "cap": prices["cap"], "curves": curves}
        out.append({"module": "sequence", "function": "trade_off", "name": "trade_off", "data": frame})
    return out
