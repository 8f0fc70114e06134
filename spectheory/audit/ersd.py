"""The audit of ERSD: what every token rule is asked, and what races add: rank laws, trees, bounds, peers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import exact, pmf
from ..errors import CostError, DataError, PrecisionError
from ..protocols import Block
from ..results import AuditReport, Interval
from ..theory import ersd, trees
from .plan import Plan, plan
from .rows import Record, join_columns, laws
from .run import PARTS, Progress, _load_part, _numbered, _save_part, audit_token_rules
from .source import Source, open_source
from .summary import figure

HEAD = 512  # ranks kept a row; the mass behind them is kept as one number
LISTS = (1, 2, 3, 4, 6, 8)  # list sizes at which peers are compared
BUDGETS = tuple(range(1, 65))
SHOWN = (1, 2, 4, 8, 16, 32, 64)
TOL = 1e-3  # certified error of H[R] a row, nats


def run(
    verifier: Any,
    source: Any = None,
    *,
    max_deviation: float | None = None,
    request: Mapping[str, Any] | None = None,
    block: int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit ERSD on recorded rows; arguments as `audit.run`. `verifier.k` is the draft budget that is singled out.

    Adds to the report: acceptance between its bounds, the rank law, H[R] against KL, expected tokens of the best tree for
    k = 1..64 under the averaged and under each row's own law with all bounds, and other list rules on the same rows.
    About a second a row of 50,000 tokens; finished shards are kept in `out`.
    """
    one = plan(verifier, request, block, sweep=False)
    opened, folder = open_source(source, one.request), None if out is None else Path(out)
    report = audit_token_rules([one], opened, max_deviation=max_deviation, out=folder)[0]
    rows, errors = _race_rows(one, opened, folder, progress)
    if not rows:
        return report
    data = _figures(rows, verifier.k, opened.manifest.get("vocab_size") or int(rows["vocab"].max()))
    known = {(e["shard"], e["row"]) for e in report.errors}
    # With rows left out the race columns would not stand beside the rows they belong to.
    columns = () if errors else ("kl", "entropy_lower", "entropy", "entropy_upper", "log_rank", "rank_error")
    head = {} if errors else {"rank_head": rows["head"]}
    return replace(
        report,
        errors=[*report.errors, *(e for e in errors if (e["shard"], e["row"]) not in known)],
        summary={**report.summary, "races": _summary(rows, data)},
        extra={**report.extra, "sections": _sections(rows, data), "figures": _wanted(data)},
        rows={**report.rows, **{name: rows[name] for name in columns}, **head},
    )


def _race_rows(
    one: Plan, source: Source, out: Path | None, progress: Progress | None
) -> tuple[Record, list[dict[str, Any]]]:
    """The race columns of every row in order, and the rows that had to be left out. Finished shards come from `out`."""
    records: list[Record] = []
    errors: list[dict[str, Any]] = []
    for i in range(len(source.shards)):
        identity = source.fingerprint(i)
        path = (
            None if out is None or identity is None else out / PARTS / f"{i:05d}-{one.fingerprint(identity)}-race.npz"
        )
        part = None if path is None else _load_part(path)
        part = part or _shard(one, source, i)
        if path is not None:
            _save_part(path, *part)
        records += [part[0]] if part[0] else []
        errors += part[1]
        if progress is not None:
            progress(i + 1, len(source.shards))
    return (join_columns(records) if records else {}), errors


def _shard(one: Plan, source: Source, i: int) -> tuple[Record, list[dict[str, Any]]]:
    records: list[Record] = []
    errors: list[dict[str, Any]] = []
    for block in _numbered(source, i):
        try:
            records.append(_measure(one, block, source.warped))
        except (DataError, CostError, PrecisionError) as error:
            errors.append({"shard": block.info["file"], "row": block.info["rows"][0], "cause": str(error)})
    return (join_columns(records) if records else {}), source.errors + errors


def _measure(one: Plan, block: Block, warped: bool) -> Record:
    """The race columns (K, ...) of one block."""
    if block.truncated is not None or block.size == 0:
        raise DataError("rank laws need the full rows of at least one draft")
    p, q, _ = laws(one, block, warped)
    return join_columns([_row(a[None], b[None], str(block.info["request"])) for a, b in zip(p, q)])


def _row(p: Any, q: Any, request: str) -> Record:
    """One row's columns, each of length 1."""
    a, b = p[0], q[0]
    law = exact.rank_estimate(a, b, TOL)
    head = np.zeros(HEAD)
    head[: min(HEAD, len(a))] = law.pmf[:HEAD]
    grown = np.cumsum(ersd.optimal_tree(law.pmf, BUDGETS[-1]).prob)
    grown = np.append(grown, np.full(BUDGETS[-1] - len(grown), grown[-1] if len(grown) else 0.0))
    others = [ersd.peers(a, b, m) for m in LISTS]
    return {
        "request": np.array([request]),
        "vocab": np.array([len(a)]),
        "acceptance": np.atleast_1d(ersd.acceptance(p, q)),
        "upper": np.atleast_1d(ersd.acceptance_upper(p, q)),
        "lower": np.atleast_1d(ersd.acceptance_lower(p, q)),
        "kl": np.atleast_1d(pmf.kl(p, q)),
        "entropy": np.array([law.entropy.estimate]),
        "entropy_lower": np.array([law.entropy.lower]),
        "entropy_upper": np.array([law.entropy.upper]),
        "log_rank": np.array([exact.log_mean(law.pmf)]),
        "rank_error": np.array([law.error]),
        "head": head[None],
        "tree": (1 + grown)[None],
        **{f"peer:{name}": np.array([[x[name] for x in others]]) for name in others[0]},
    }


def _averaged(rows: Record) -> tuple[Any, float]:
    """The rank law averaged over rows, and its L1 error. The mass beyond HEAD is merged into one last outcome.

    Merging can only lengthen the best tree's walks, so upper bounds for the merged law hold for the law itself.
    """
    head = rows["head"].mean(axis=0)
    tail = max(0.0, 1 - float(head.sum()))
    law = np.append(head, tail)
    return law / law.sum(), float(rows["rank_error"].mean()) + 2 * tail


def _figures(rows: Record, k: int, vocab: int) -> dict[str, Any]:
    """All curves as plain data: by budget, by rank, by list size."""
    law, error = _averaged(rows)
    budgets = sorted({*BUDGETS, k} - {0})
    full = ersd.optimal_tree(law, max(budgets))
    grown = 1 + np.cumsum(full.prob)
    ours, standard = float(rows["acceptance"].mean()), float(rows["upper"].mean())
    bounds = {n: [float(f(law, b)) for b in budgets] for n, f in (("leaf", _leaf(vocab)), ("vfree", trees.vfree_bound))}
    tree = ersd.optimal_tree(law, k)
    depth = _depths(full.parent)
    h = float(pmf.entropy(law))
    return {
        "k": k,
        "budgets": budgets,
        "averaged": [float(grown[min(b, len(grown)) - 1]) for b in budgets],
        # walks under two laws at total variation e part with probability <= e a step, and then differ by <= depth + 1
        "averaged_error": [error / 2 * float(grown[b - 1]) * (max(depth[:b]) + 1) for b in budgets],
        "rows": {str(b): float(rows["tree"][:, b - 1].mean()) for b in BUDGETS},
        "chain": [float(ersd.chain_tokens(ours, b)) for b in budgets],
        "standard": [float(ersd.chain_tokens(standard, b)) for b in budgets],
        **bounds,
        "paper": [(math.log(vocab) + math.log(b + 1)) / h if h > 0 else math.inf for b in budgets],
        "entropy": h,
        "law": law[:16].tolist(),
        "tail": float(law[16:].sum()),
        "tree": {"parent": tree.parent.tolist(), "rank": tree.rank.tolist(), "prob": tree.prob.tolist()},
        "lists": list(LISTS),
        "peers": {
            "ERSD": [float(law[:m].sum()) for m in LISTS],
            **{n.partition(":")[2]: rows[n].mean(axis=0).tolist() for n in rows if n.startswith("peer:")},
        },
    }


def _leaf(vocab: int) -> Any:
    """The leaf bound over V ranks, from the law with its tail merged: merging only lowers H, so the bound stays one."""

    def bound(law: Any, k: int) -> float:
        h = float(pmf.entropy(law))
        return math.inf if h == 0 else math.log(trees.leaves(k, vocab)) / h

    return bound


def _depths(parent: Any) -> list[int]:
    out: list[int] = []
    for a in np.asarray(parent).tolist():
        out.append(1 if a < 0 else out[a] + 1)
    return out or [0]


def _summary(rows: Record, data: Mapping[str, Any]) -> dict[str, Any]:
    n = len(rows["kl"])
    violated = int((rows["entropy_upper"] < rows["kl"]).sum())
    undecided = int(((rows["entropy_lower"] < rows["kl"]) & (rows["entropy_upper"] >= rows["kl"])).sum())
    at = {b: i for i, b in enumerate(data["budgets"])}
    return {
        "rows": n,
        "acceptance": figure(rows["acceptance"], rows["request"], None, (0.0, 1.0)),
        "upper": figure(rows["upper"], rows["request"], None, (0.0, 1.0)),
        "lower": figure(rows["lower"], rows["request"], None, (0.0, 1.0)),
        "entropy": figure(rows["entropy_lower"], rows["request"], rows["entropy_upper"]),
        "kl": figure(rows["kl"], rows["request"]),
        "log_rank": figure(rows["log_rank"], rows["request"]),
        "naive_bound_fails": violated,
        "naive_bound_undecided": undecided,
        "tokens": {str(b): _tokens(data, at[b]) for b in sorted({*SHOWN, data["k"]} & set(at))},
    }


def _tokens(data: Mapping[str, Any], i: int) -> Interval:
    value, error = data["averaged"][i], data["averaged_error"][i]
    return Interval(max(1.0, value - error), value, value + error, "certified", None, "E5, averaged rank law")


def _sections(rows: Record, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tables that the terminal and the HTML page show."""
    summary = _summary(rows, data)
    named = {
        "P(R = 1), acceptance of ERSD": "acceptance",
        "1 - TV, standard rule": "upper",
        "(1 - TV) / (1 + TV), worst case": "lower",
        "H[R], nats": "entropy",
        "KL(target || draft), nats": "kl",
        "E ln R, nats": "log_rank",
    }
    table = []
    for label, name in named.items():
        s = summary[name]
        mean, quantiles = s["on_data"], s["quantiles"]
        spread = [float(quantiles[key]) for key in ("min", "median", "max")]
        table.append(
            [label, mean.upper if mean.lower == mean.upper else f"{mean.lower:.4g} to {mean.upper:.4g}", *spread]
        )
    n, violated = summary["rows"], summary["naive_bound_fails"]
    fails = f"H[R] >= KL, a common reading, fails on {violated} of {n} rows ({summary['naive_bound_undecided']} undecided); see theorem E3."
    ranks = [[str(r + 1), x, float(sum(data["law"][: r + 1]))] for r, x in enumerate(data["law"][:8])]
    return [
        {
            "title": "Exponential races",
            "columns": ["over the rows", "mean", "min", "median", "max"],
            "rows": table,
            "notes": [fails],
        },
        {"title": "Averaged rank law", "columns": ["rank r", "P(R = r)", "P(R <= r)"], "rows": ranks},
        _token_section(data, summary),
        {
            "title": "List rules on the same rows: probability that one of m drafts is emitted",
            "columns": ["rule", *(f"m = {m}" for m in data["lists"])],
            "rows": [[name, *values] for name, values in data["peers"].items()],
            "notes": ["ERSD's and greedy drafts are distinct, the others' i.i.d.; no order holds in general (E4)."],
        },
    ]


def _token_section(data: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    at = {b: i for i, b in enumerate(data["budgets"])}
    rows = []
    for b in sorted({*SHOWN, data["k"]} & set(at)):
        i = at[b]
        own = data["rows"].get(str(b))
        values = [data[name][i] for name in ("chain", "standard", "vfree", "leaf", "paper")]
        rows.append([f"{b}{' (k)' if b == data['k'] else ''}", data["averaged"][i], own, *values])
    worst = max(data["averaged_error"][at[b]] for b in {*SHOWN, data["k"]} & set(at))
    return {
        "title": "Expected tokens per target call by draft budget",
        "columns": [
            "k",
            "best tree",
            "trees per row",
            "ERSD chain",
            "standard chain",
            "V-free bound",
            "leaf bound",
            "paper bound",
        ],
        "rows": rows,
        "notes": [
            f"best tree: for the averaged rank law, certified within {worst * 1.1:.2g}; trees per row: each row's own law, averaged.",
            "chains: the mean acceptance at every position. Bounds are for the averaged law: trees per row may exceed them (E6).",
        ],
    }


def _wanted(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The figures that `figures.audit` draws from the report."""
    curves = {
        name: data[name] for name in ("budgets", "averaged", "rows", "chain", "standard", "leaf", "vfree", "entropy")
    }
    finite = {**curves, "paper": data["paper"]} if data["entropy"] > 0 else None
    return [
        *([{"module": "ersd", "function": "tokens", "name": "tokens", "data": finite}] if finite else []),
        {"module": "ersd", "function": "ranks", "name": "ranks", "data": {"law": data["law"], "tail": data["tail"]}},
        {"module": "ersd", "function": "tree", "name": "tree", "data": data["tree"]},
        {
            "module": "ersd",
            "function": "peers",
            "name": "peers",
            "data": {"lists": data["lists"], "peers": data["peers"]},
        },
    ]
