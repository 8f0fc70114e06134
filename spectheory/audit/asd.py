"""The audit of a regret budget: what it buys on recorded greedy blocks, what it gives up, and whether A1 to A5 hold there.

Recorded blocks follow the strict greedy trajectory: each is what strict decoding met. ASD in the loop would leave that
path at its first exception and meet other blocks; `audit.live` decodes the real pair with the rule in the loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..errors import DataError, UsageError
from ..exact.offline import offline_optimum
from ..montecarlo import hedged_capital
from ..results import AuditReport, Interval
from ..theory import asd as theory
from ..verifiers.regret_budget import RegretBudget
from .asd_tables import sections
from .exhaustion import exhaustion
from .recorded import Played, Row, by_request, read_rows, refused, replay
from .verdict import HOLDS, REFUTED

ALPHA = 0.05
CLAIM = "A1 to A5 (budget, cap, gate, strict at zero, maximality) hold on every recorded block"
# Sweep of (B, g, m); gates in suffix units, for `normalized` times K. The published settings are among them.
BUDGETS = (1.0, 2.0, 4.0, 8.0, 12.0, math.inf)
GATES = (0.0625, 0.125, 0.25, 0.5, 1.0)
CAPS = (1, 2, 3)


def run(
    verifier: Any,
    source: Any = None,
    *,
    max_deviation: float | None = None,
    request: Any = None,
    block: int | None = None,
    out: Any = None,
    progress: Any = None,
) -> AuditReport:
    """Audit a `RegretBudget` on recorded greedy blocks: `source` as `read_rows` takes it (None: the embedded ones).

    Bad rows are listed in `report.errors`, the others reported. The verdict is about the claim A1 to A5 on these rows.
    Raises UsageError for `max_deviation`, request settings or a `block` other than recorded: outputs are deterministic
    (TV 0 or 1), and the scores are those of temperature 1.
    """
    if max_deviation is not None:
        raise UsageError(
            "a regret budget has no one-step deviation: its output is one sequence, TV to strict is 0 or 1"
        )
    if request:
        raise UsageError(f"greedy scores are recorded at temperature 1, unwarped: {', '.join(request)} cannot apply")
    rows, errors, manifest, name = read_rows(source)
    played, bad = replay(verifier, rows, manifest.get("vocab_size"))
    errors = errors + bad
    _check_blocks(played, errors, name, block)
    if progress is not None:
        progress(1, 2)
    summary, points = summarise(verifier, played), sweep(verifier, [p.row for p in played])
    if progress is not None:
        progress(2, 2)
    kept = ("models", "draft_mode", "advance", "tv_floor")
    return AuditReport(
        verifier={
            "rule": "asd",
            "title": f"asd({', '.join(f'{k}={v}' for k, v in settings(verifier).items())})",
            "settings": settings(verifier),
            "class": type(verifier).__qualname__,
        },
        source={"name": name, **{k: manifest[k] for k in kept if k in manifest}},
        claim=CLAIM,
        verdict=REFUTED if any(g["violations"] for g in summary["guarantees"]) else HOLDS,
        summary=summary,
        sweep=points,
        errors=errors,
        extra={"sections": sections(summary, points), "figures": figures(verifier, played, summary, points)},
        rows=per_row(verifier, played),
    )


def _check_blocks(played: Sequence[Played], errors: Sequence[Any], name: str, block: int | None) -> None:
    """Raises DataError where nothing is usable, UsageError for blocks of several sizes or another `block` than recorded."""
    if not played:
        cause = f"the first cause: {errors[0]['cause']}" if errors else "there are none"
        raise DataError(f"{name}: no usable block; {cause}")
    sizes = {len(p.row.tokens) for p in played}
    if len(sizes) > 1 or block not in (None, *sizes):
        known = ", ".join(str(k) for k in sorted(sizes))
        raise UsageError(f"blocks must all have the same K and --block must be it: recorded K = {known}")


def summarise(rule: RegretBudget, played: Sequence[Played]) -> dict[str, Any]:
    """Everything the report says beside the sweep, as plain data and Intervals."""
    rows, groups = [p.row for p in played], by_request(played)
    size = len(rows[0].tokens)
    return {
        "rows": len(rows),
        "blocks": len(rows),
        "requests": len(groups),
        "block_size": size,
        "measured": {label: measure(one, rows) for label, one in contestants(rule, size).items()},
        "guarantees": guarantees(rule, played),
        "variants_differ": variants_differ(rule, rows),
        "exhaustion": exhaustion(rule, groups),
    }


def settings(rule: RegretBudget) -> dict[str, Any]:
    """The controls as plain numbers."""
    return {f.name: v if isinstance(v := getattr(rule, f.name), str | int) else float(v) for f in fields(rule)}


def contestants(rule: RegretBudget, size: int) -> dict[str, RegretBudget]:
    """Strict greedy, both variants with the same reach (g_normalized = K g_suffix), and the published settings:

    suffix by default, suffix exploratory, normalized in the DeepSeek showcase.
    """
    suffix = rule.gate if rule.variant == "suffix" else rule.gate / size
    return {
        "strict": replace(rule, cap=0),
        "suffix": replace(rule, gate=suffix, variant="suffix"),
        "normalized": replace(rule, gate=suffix * size, variant="normalized"),
        "published 8, .25, 2": RegretBudget(8.0, 0.25, 2, "suffix"),
        "published 12, .5, 2": RegretBudget(12.0, 0.5, 2, "suffix"),
        "published 2.0625 twice, 1": RegretBudget(2.0625, 2.0625, 1, "normalized"),
    }


def measure(rule: RegretBudget, rows: Sequence[Row]) -> dict[str, Any]:
    """What one rule does on the rows: totals are counts or exact on the data, `population` covers new requests."""
    played, _ = replay(rule, rows)
    groups = by_request(played)
    size = len(rows[0].tokens)
    accepted, strict = [p.accepted for p in played], [theory.strict_length(p.row.matches) for p in played]
    spent, committed = [float(g[-1].after.spent) for g in groups], sum(accepted) + len(played)
    optimum = [offline_optimum(rule, [(p.row.matches, p.row.regrets) for p in g]).accepted for g in groups]
    extra = [sum(p.accepted - theory.strict_length(p.row.matches) for p in g) / len(g) for g in groups]
    return {
        "settings": settings(rule),
        "accepted": sum(accepted),
        "accepted_per_call": Interval.exact(float(np.mean(accepted)), "on data"),
        "extra_per_call": {
            "on_data": Interval.exact((sum(accepted) - sum(strict)) / len(played), "on data"),
            "population": hedged_capital(extra, ALPHA, (0.0, float(size))),
        },
        "tokens_gain": Interval.exact(committed / (sum(strict) + len(played)) - 1, "on data"),
        "acceptance_gain": Interval.exact(sum(accepted) / max(sum(strict), 1) - 1, "on data"),
        "exceptions": sum(p.exceptions for p in played),
        "nats_per_request": Interval.exact(float(np.mean(spent)), "on data"),
        "nats_per_token": Interval.exact(sum(spent) / committed, "A7, on data"),
        "requests_refused": sum(any(refused(rule, p) for p in g) for g in groups),
        "offline_optimum": sum(optimum),
        "of_optimum": Interval.exact(sum(accepted) / max(sum(optimum), 1), "A10, on data"),
    }


def guarantees(rule: RegretBudget, played: Sequence[Played]) -> list[dict[str, Any]]:
    """A1 to A5 on the data, judged by their closed forms: {claim, what, worst, bound, violations}."""
    groups = by_request(played)
    tolerance = 1e-12 * (1 + (float(rule.budget) if rule.budget < math.inf else 0.0))
    spent = [float(g[-1].after.spent) for g in groups]
    bounds = [float(theory.spend_bound(rule, len(g))) for g in groups]
    caps = [(p.exceptions, theory.exceptions_bound(rule, len(p.row.tokens))) for p in played]
    paid = [(c, len(p.row.tokens)) for p in played for c in p.after.ledger[len(p.before.ledger) :]]
    # Divided as published: r / s <= g. r <= g s would differ by a rounding.
    gates = [float(c.regret) / float(theory.suffix_value(rule, c.position, k)) for c, k in paid]
    zero = [replace(rule, cap=0)] + ([replace(rule, budget=0)] if rule.budget != 0 else [])
    rows = [p.row for p in played]
    strict = [theory.strict_length(row.matches) for row in rows]
    moved = sum(p.accepted != n for z in zero for p, n in zip(replay(z, rows)[0], strict))
    longest = sum(p.accepted != n for g in groups for p, n in zip(g, _longest(rule, g)))
    return [
        _line(
            "A1",
            "nats spent by a request",
            max(spent),
            max(bounds),
            sum(s > b + tolerance for s, b in zip(spent, bounds)),
        ),
        _line("A2", "exceptions in a block", max(e for e, _ in caps), rule.cap, sum(e > m for e, m in caps)),
        _line(
            "A3",
            "accepted regret per suffix value",
            max(gates, default=0.0),
            rule.gate,
            sum(x > rule.gate for x in gates),
        ),
        _line("A4", "blocks not strict at m = 0 or B = 0", moved, 0, moved),
        _line("A5", "blocks not maximal given what is left", longest, 0, longest),
    ]


def _line(claim: str, what: str, worst: Any, bound: Any, violations: int) -> dict[str, Any]:
    return {"claim": claim, "what": what, "worst": worst, "bound": bound, "violations": int(violations)}


def _longest(rule: RegretBudget, group: Sequence[Played]) -> list[int]:
    """The longest feasible prefix of each block of a request, given what A1's ledger says is left."""
    left, out = rule.budget, []
    for one in group:
        matches, regrets = one.row.matches.tolist(), one.row.regrets.tolist()
        out.append(theory.longest_feasible(rule, matches, regrets, left))
        left = max(left - sum(regrets[: one.accepted]), 0)
    return out


def variants_differ(rule: RegretBudget, rows: Sequence[Row]) -> int:
    """Blocks on which the two variants of equal reach accept different lengths."""
    both = contestants(rule, len(rows[0].tokens))
    lengths = [[p.accepted for p in replay(both[v], rows)[0]] for v in ("suffix", "normalized")]
    return sum(a != b for a, b in zip(*lengths))


def sweep(rule: RegretBudget, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Extra tokens per call against log-likelihood given up per token over a grid of (B, g, m); `frontier` marks the

    points that no other dominates.
    """
    scale = 1 if rule.variant == "suffix" else len(rows[0].tokens)
    strict = sum(theory.strict_length(row.matches) for row in rows)
    blocks = [(row.request, row.matches.tolist(), row.regrets.tolist()) for row in rows]
    points: list[dict[str, Any]] = []
    for budget in BUDGETS:
        for gate in GATES:
            for cap in CAPS:
                one = replace(rule, budget=budget, gate=gate * scale, cap=cap)
                accepted, spent = _totals(one, blocks)
                points.append(
                    {
                        "budget": budget,
                        "gate": gate * scale,
                        "cap": cap,
                        "extra_per_call": (accepted - strict) / len(rows),
                        "nats_per_token": spent / (accepted + len(rows)),
                    }
                )
    best = -math.inf
    for point in sorted(points, key=lambda p: (p["nats_per_token"], -p["extra_per_call"])):
        point["frontier"] = point["extra_per_call"] > best
        best = max(best, point["extra_per_call"])
    return points


def _totals(rule: RegretBudget, blocks: Sequence[tuple[Any, Any, Any]]) -> tuple[int, float]:
    """(accepted, nats spent) over all blocks, by the rule's own scan: rows were checked before."""
    left: dict[Any, Any] = {}
    accepted, spent = 0, 0.0
    for request, matches, regrets in blocks:
        n, taken = rule.scan(matches, regrets, left.get(request, rule.budget))
        charge = sum(regrets[i] for i in taken)
        left[request] = max(left.get(request, rule.budget) - charge, 0)
        accepted, spent = accepted + n, spent + charge
    return accepted, spent


def per_row(rule: RegretBudget, played: Sequence[Played]) -> dict[str, Any]:
    """What rows.npz holds, one entry a block."""
    return {
        "row": np.array([p.row.row for p in played]),
        "request": np.array([p.row.request for p in played]),
        "accepted": np.array([p.accepted for p in played]),
        "strict": np.array([theory.strict_length(p.row.matches) for p in played]),
        "exceptions": np.array([p.exceptions for p in played]),
        "charge": np.array([p.charge for p in played]),
        "spent": np.array([float(p.after.spent) for p in played]),
        "refused": np.array([refused(rule, p) for p in played]),
    }


def figures(rule: RegretBudget, played: Sequence[Played], summary: Any, points: Sequence[Any]) -> list[dict[str, Any]]:
    """The three figures' data: the ledger of the request that used most exceptions, the frontier, the exhaustion curve."""
    busy = max(by_request(played), key=lambda g: len(g[-1].after.ledger))
    charges = [
        {
            "block": c.block,
            "position": c.position,
            "regret": float(c.regret),
            "value": float(c.value),
            "spent": float(c.spent),
        }
        for c in busy[-1].after.ledger
    ]
    ledger = {
        "request": busy[0].row.request,
        "budget": float(rule.budget),
        "size": len(busy[0].row.tokens),
        "blocks": len(busy),
        "charges": charges,
        "refused": [i for i, p in enumerate(busy) if refused(rule, p)],
    }
    own = summary["measured"][rule.variant]
    marks = [
        {
            "label": label,
            "extra_per_call": m["extra_per_call"]["on_data"].upper,
            "nats_per_token": m["nats_per_token"].upper,
        }
        for label, m in (
            ("this rule", own),
            *((k, summary["measured"][k]) for k in summary["measured"] if "published" in k),
        )
    ]
    frontier = {"points": [p for p in points if p["budget"] < math.inf], "marks": marks}
    return [
        {"module": "asd", "function": name, "name": f"asd_{name}", "data": data}
        for name, data in (("ledger", ledger), ("frontier", frontier), ("exhaustion", summary["exhaustion"]["curve"]))
    ]
