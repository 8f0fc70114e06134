"""From rows to the report: means on the data and in the population, quantiles, the sweep, the worst rows, the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._version import __version__
from ..montecarlo.intervals import hedged_capital
from ..results import AuditReport, Interval
from .eos import expected_tokens
from .plan import Plan
from .source import Source
from .verdict import decide

ALPHA = 0.05
WORST = 10
QUANTILES = {"min": 0.0, "p05": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99, "max": 1.0}
METHOD = (
    "population: rows of one request are dependent, so each request counts once (its mean over its rows); requests are "
    "taken as independent draws; betting interval (2010.09686, theorem 3), valid at every sample size. "
    "standard_error: sandwich estimate clustered by request, asymptotic"
)
# Below this bound on its p-value, the claim that drafts were drawn from the declared q is refuted.
CONTRACT_ALPHA = 1e-6
ALL_SHARDS = "all shards"

Rows = Mapping[str, Any]


def summarise(plan: Plan, source: Source, rows: Rows, errors: list[Any], limit: float | None) -> AuditReport:
    """The report of one rule over `rows` in order. `limit` is the claim's bound on the mean deviation, or None."""
    head = {
        "verifier": plan.spec(),
        "source": {**source.spec(), "request": dict(plan.request)},
        "extra": {
            "tv_floor": float(source.manifest.get("tv_floor") or 0.0),
            "block": plan.block,
            "top_p": plan.top_p,
            "sweep": None if plan.sweep is None else [plan.sweep[0], list(plan.sweep[1])],
            "limit": limit,
            "texts": {},
        },
    }
    return _report(head, rows, errors, source.texts)


def resummarise(reports: Sequence[AuditReport], rows: Rows) -> AuditReport:
    """One report over the `rows` of several reports of one rule and source."""
    first = reports[0]
    head = {"verifier": first.verifier, "source": first.source, "extra": first.extra}
    # the worst rows of all are among the worst rows of each, so their texts are known
    texts = {int(k): v for r in reports for k, v in r.extra["texts"].items()}
    return _report(head, rows, [e for r in reports for e in r.errors], texts)


def _report(head: dict[str, Any], rows: Rows, errors: list[Any], texts: Mapping[int, str]) -> AuditReport:
    extra = head["extra"]
    report = AuditReport(
        **head, claim="", verdict="no data", summary={"rows": 0}, spectheory_version=__version__, errors=errors
    )
    if not rows:
        return replace(report, claim=decide(Interval.exact(0), extra["limit"])[0])
    summary = _summary(rows, extra, bool(report.source.get("request")))
    contract = summary["drafts_follow_q"]
    if contract["refuted"]:
        cause = f"the drafted tokens do not follow the declared q (p-value at most {contract['p_value']:.2g})"
        errors = [*errors, {"shard": ALL_SHARDS, "row": None, "cause": cause}]
    claim, verdict = decide(summary["deviation"]["on_data"], extra["limit"])
    worst = _worst(rows)
    used = {t for row in worst for t in _ids(row)}
    texts = {t: texts[t] for t in sorted(used) if t in texts}
    # The texts of every row's tokens would be most of a vocabulary: those of this report's worst rows are kept.
    return replace(
        report,
        claim=claim,
        verdict=verdict,
        summary=summary,
        sweep=_sweep(rows, extra),
        worst_rows=[_with_texts(row, texts) for row in worst],
        errors=errors,
        extra={**extra, "texts": {str(k): v for k, v in texts.items()}},
        rows=dict(rows),
    )


def _in_order(errors: Sequence[Any]) -> list[Any]:
    """Errors by shard and row, each once; what was concluded from all rows is concluded anew."""
    kept: list[Any] = []
    for error in sorted(errors, key=lambda e: (e["shard"], e["row"] or 0)):
        if error["shard"] != ALL_SHARDS and error not in kept:
            kept.append(error)
    return kept


def _summary(rows: Rows, extra: Mapping[str, Any], refiltered: bool) -> dict[str, Any]:
    floor = extra["tv_floor"]
    out: dict[str, Any] = {
        "rows": len(rows["row"]),
        "blocks": len(_block_starts(rows)),
        "requests": len(np.unique(rows["request"])),
        "method": METHOD,
    }
    for name in ("tv", "acceptance", "deviation"):
        out[name] = figure(rows[name], rows["request"], rows[f"{name}_upper"], (0.0, 1.0))
    for name in ("tv", "acceptance"):
        out[name]["model"] = _widened(out[name]["on_data"], floor)
    out["deviation"]["model"] = _model_deviation(rows, out["deviation"]["on_data"], floor)
    out["gap"] = figure(*_gap(rows))
    for name in ("kl_target_output", "kl_output_target", "max_ratio"):
        out[name] = figure(rows[name], rows["request"])
    out["tokens_per_call"] = _tokens(rows, extra, "acceptance" if refiltered else "accept_drafted")
    out["lossless"] = _lossless(rows, extra, refiltered)
    out["nucleus"] = _nucleus(rows, extra)
    out["after_eos"] = _eos(rows)
    out["drafts_follow_q"] = contract(rows["pit"])
    return out


def figure(x: Any, requests: Any, upper: Any = None, bounds: tuple[float, float] | None = None) -> dict[str, Any]:
    """Mean `on_data`, mean in the `population` of requests, `standard_error`, quantiles, of one column (n,).

    `upper`: the rows' upper values where they are only known to lie in between. `bounds` (a, b) of the variable: without
    them there is no interval for the population, nor where rows are NaN: those are left out, counted as `unknown`, and what
    is left is no sample of requests any more.
    """
    high = x if upper is None else upper
    known = ~(np.isnan(x) | np.isnan(high))
    x, high, requests = np.asarray(x)[known], np.asarray(high)[known], np.asarray(requests)[known]
    if not x.size:
        return {
            "on_data": None,
            "population": None,
            "standard_error": None,
            "quantiles": {},
            "unknown": int((~known).sum()),
        }
    low_mean, high_mean = _mean(x), _mean(high)
    exact = bool((x == high).all())
    mean = (
        Interval.exact(low_mean) if exact else Interval(low_mean, None, high_mean, "certified", None, "truncated rows")
    )
    return {
        "on_data": mean,
        "population": None if bounds is None or not known.all() else _population(x, high, requests, bounds),
        "standard_error": _standard_error(x, requests) if exact else None,
        "quantiles": {k: _quantile(x if exact else (x + high) / 2, v) for k, v in QUANTILES.items()},
        "unknown": int((~known).sum()),
    }


def _mean(x: Any) -> float:
    """Correctly rounded, so that it does not depend on how rows were gathered."""
    return math.inf if np.isinf(x).any() else math.fsum(x) / len(x)


def _quantile(x: Any, level: float) -> float:
    """The value at the level from below: no interpolation between a finite and an infinite one."""
    return float(np.quantile(x, level, method="inverted_cdf"))


def cluster_means(x: Any, requests: Any) -> tuple[Any, Any]:
    """(mean, count) of each request, in order of its name."""
    _, index, count = np.unique(requests, return_inverse=True, return_counts=True)
    return np.bincount(index, weights=x) / count, count


def _population(low: Any, high: Any, requests: Any, bounds: tuple[float, float]) -> Interval:
    means = cluster_means(low, requests)[0]
    below = hedged_capital(means, ALPHA, bounds)
    if (low == high).all():
        return below
    above = hedged_capital(cluster_means(high, requests)[0], ALPHA, bounds)
    # each end misses with probability at most ALPHA / 2
    return Interval(below.lower, None, above.upper, "statistical", ALPHA, below.source)


def _standard_error(x: Any, requests: Any) -> float | None:
    """Of the mean over rows, clustered by request: sqrt(G / (G - 1) sum_g (S_g - n_g mean)^2) / n."""
    means, count = cluster_means(x, requests)
    if len(means) < 2 or not np.isfinite(means).all():
        return None
    residuals = count * (means - x.mean())
    return float(math.sqrt(len(means) / (len(means) - 1) * (residuals**2).sum()) / len(x))


def _widened(mean: Interval | None, floor: float) -> Interval | None:
    """A mean under rounding of at most `floor` in TV a row."""
    if mean is None or floor == 0:
        return None
    return Interval(
        max(0.0, mean.lower - floor), mean.estimate, min(1.0, mean.upper + floor), "certified", None, "tv_floor"
    )


def _model_deviation(rows: Rows, mean: Interval | None, floor: float) -> Interval | None:
    """NSD's deviation over all nuclei inside the rounding band; None where the rule has no such band."""
    if mean is None or floor == 0 or not (rows["deviation_min"] < rows["deviation_max"]).any():
        return None
    return Interval(
        _mean(rows["deviation_min"]), mean.estimate, _mean(rows["deviation_max"]), "certified", None, "rounding band"
    )


def _gap(rows: Rows) -> tuple[Any, Any, Any]:
    """P(reject) + TV(output, p) - TV(p, q) >= 0 (Yin et al. 2411.00841): what the rule wastes against the optimal line."""
    exact = rows["tv"] == rows["tv_upper"]
    gap = rows["deviation"] + (1 - rows["acceptance"]) - rows["tv"]
    gap = np.where(exact, np.where(gap < 1e-12, 0, gap), 0)  # truncated rows: standard and NSD lie on the line (N2)
    return gap, rows["request"], None


def _block_starts(rows: Rows) -> Any:
    return np.flatnonzero(rows["position"] == 0)


def _tokens(rows: Rows, extra: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Expected tokens per target call, a value a block, over the coins of the rule; end of text respected.

    Given the recorded drafts, by `accept_drafted`. Under other settings than the recorded ones those are no draws from q
    any more: then the acceptance rates at the recorded contexts stand in for them.
    """
    starts = _block_starts(rows)
    ends = np.append(starts[1:], len(rows["row"]))
    most = int((ends - starts).max())
    size = min(extra["block"] or most, most)
    accept = rows[column]
    values = [expected_tokens(accept[a:b][:size], rows["ends"][a:b][:size]) for a, b in zip(starts, ends)]
    out = figure(np.array(values), rows["request"][starts], None, (1.0, float(size + 1)))
    return {**out, "block": size, "given": "recorded drafts" if column.startswith("accept_") else "recorded contexts"}


def _lossless(rows: Rows, extra: Mapping[str, Any], refiltered: bool) -> dict[str, Any]:
    """What the standard rule does on the same rows, for comparison: acceptance 1 - TV(p, q) (S2), tokens per call."""
    acceptance = figure(1 - rows["tv_upper"], rows["request"], 1 - rows["tv"], (0.0, 1.0))
    tokens = _tokens({**rows, "lossless": 1 - rows["tv"]}, extra, "lossless" if refiltered else "accept_lossless")
    return {"acceptance": acceptance["on_data"], "tokens_per_call": tokens["on_data"]}


def _nucleus(rows: Rows, extra: Mapping[str, Any]) -> dict[str, Any]:
    known = rows["nucleus_size"] >= 0
    size, low, high = (rows[k][known] for k in ("nucleus_size", "nucleus_min", "nucleus_max"))
    out: dict[str, Any] = {"top_p": extra["top_p"], "ambiguous": int(rows["nucleus_ambiguous"].sum())}
    if size.size:
        out["quantiles"] = {k: int(_quantile(size, v)) for k, v in QUANTILES.items()}
        out["model"] = {
            "changed_by_rounding": int((low < high).sum()),
            "smallest": int(low.min()),
            "largest": int(high.max()),
        }
    return out


def _eos(rows: Rows) -> dict[str, Any]:
    """Rows behind an end of text are never reached: acceptance without them."""
    behind = rows["after_eos"]
    if not behind.any():
        return {"rows_behind_eos": 0}
    live = ~behind
    return {
        "rows_behind_eos": int(behind.sum()),
        "acceptance": figure(rows["acceptance"][live], rows["request"][live], None, (0.0, 1.0)),
    }


def contract(pit: Any) -> dict[str, Any]:
    """Do the drafts follow the declared q? The transforms of drawn tokens are independent uniforms.

    Kolmogorov's distance with Massart's bound P(distance > d) <= 2 exp(-2 n d^2), valid at every n.
    """
    u = np.sort(pit[~np.isnan(pit)])
    n = len(u)
    if n == 0:
        return {"tested": 0, "refuted": False}
    steps = np.arange(n + 1) / n
    distance = float(max((steps[1:] - u).max(), (u - steps[:-1]).max()))
    p_value = min(1.0, 2 * math.exp(-2 * n * distance**2))
    return {"tested": n, "distance": distance, "p_value": p_value, "refuted": p_value < CONTRACT_ALPHA}


def _sweep(rows: Rows, extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """[{parameter, value, deviation, acceptance}] over the rule's parameter, means on the data and in the population."""
    if extra["sweep"] is None:
        return []
    name, values = extra["sweep"]
    out = []
    for j, value in enumerate(values):
        pair = {
            k: figure(rows[f"sweep_{k}"][:, j], rows["request"], None, (0.0, 1.0)) for k in ("deviation", "acceptance")
        }
        kept = {k: {"on_data": v["on_data"], "population": v["population"]} for k, v in pair.items()}
        out.append({"parameter": name, "value": value, **kept})
    return out


def _worst(rows: Rows) -> list[dict[str, Any]]:
    """The rows of largest deviation (then of least acceptance), with the tokens that moved."""
    order = np.lexsort((rows["row"], rows["shard"], rows["acceptance"], -rows["deviation_upper"]))[:WORST]
    out = []
    for i in order:
        row: dict[str, Any] = {
            k: rows[k][i].item() for k in ("shard", "row", "request", "block", "position", "context")
        }
        row |= {k: rows[k][i].item() for k in ("deviation", "acceptance", "tv", "nucleus_size")}
        row["drafted"], row["target_top"] = {"id": int(rows["token"][i])}, {"id": int(rows["target_top"][i])}
        for side in ("gained", "lost"):
            pairs = zip(rows[side][i], rows[f"{side}_mass"][i])
            row[side] = [{"id": int(t), "mass": float(m)} for t, m in pairs if m > 1e-12]
        out.append(row)
    return out


def _ids(row: Mapping[str, Any]) -> list[int]:
    return [row["drafted"]["id"], row["target_top"]["id"], *(t["id"] for t in (*row["gained"], *row["lost"]))]


def _with_texts(row: dict[str, Any], texts: Mapping[int, str]) -> dict[str, Any]:
    def named(token: dict[str, Any]) -> dict[str, Any]:
        return {**token, "text": texts.get(token["id"])}

    sides = {side: [named(t) for t in row[side]] for side in ("gained", "lost")}
    return {**row, "drafted": named(row["drafted"]), "target_top": named(row["target_top"]), **sides}
