"""The tables of an ASD audit, as plain data for the terminal and the HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .text import interval, number

# arXiv 2608.03447, as published; measured there on other models, other tasks, other hardware.
PUBLISHED = (
    ("throughput over matched strict verification, range", "+3.05 % to +15.26 %", "Qwen3-14B + DSpark-14B, 7 tasks"),
    ("throughput over matched strict verification, mean", "+7.78 %", "Qwen3-14B + DSpark-14B, 7 tasks"),
    ("verifier-side acceptance", "+10 % to +16 %", "DeepSeek-V4-Flash, GSM8K and MATH-500"),
    ("nats spent per request", "1.45 (723.75 over 500)", "DeepSeek showcase, B = g = 2.0625, m = 1, K = 5"),
)


def sections(summary: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All tables, in reading order."""
    return [
        _measured(summary),
        _guarantees(summary["guarantees"]),
        _exhaustion(summary["exhaustion"]),
        _frontier(points),
        _published(summary),
    ]


def _measured(summary: Mapping[str, Any]) -> dict[str, Any]:
    rows = []
    for label, m in summary["measured"].items():
        rows.append(
            [
                label,
                interval(m["accepted_per_call"]),
                interval(m["extra_per_call"]["on_data"]),
                "-" if label == "strict" else _span(m["extra_per_call"]["population"]),
                m["exceptions"],
                interval(m["nats_per_request"]),
                interval(m["nats_per_token"]),
                m["requests_refused"],
                interval(m["of_optimum"]),
            ]
        )
    columns = [
        "rule",
        "accepted per call",
        "extra over strict",
        "population, 95 %",
        "exceptions",
        "nats per request",
        "nats per token",
        "requests refused",
        "of optimum",
    ]
    size = summary["block_size"]
    notes = [
        f"recorded blocks of {size} greedy drafts ALONG THE STRICT PATH, a budget a request; in the loop later blocks would differ.",
        f"suffix and normalized with equal reach (g_normalized = {size} g_suffix) accept different lengths on "
        f"{summary['variants_differ']} blocks.",
        "nats per token: log-likelihood given up against the greedy envelope of the same prefixes (A7), not strict's output.",
        "of optimum: accepted tokens over the best stopping lengths in hindsight (A10). population: new requests, betting interval.",
    ]
    return {"title": "What the budget buys", "columns": columns, "rows": rows, "notes": notes}


def _guarantees(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = [
        [line["claim"], line["what"], *(number(line[k]) for k in ("worst", "bound", "violations"))] for line in lines
    ]
    return {
        "title": "Guarantees on these blocks",
        "columns": ["claim", "quantity", "worst", "bound", "violations"],
        "rows": rows,
    }


def _exhaustion(found: Mapping[str, Any]) -> dict[str, Any]:
    first = sorted(n for n in found["first_refusals"] if n is not None)
    total = len(found["first_refusals"])
    rows = [
        ["requests with a budget refusal", f"{len(first)} of {total}"],
        ["median block of the first refusal, where there is one", number(first[len(first) // 2]) if first else "-"],
        ["mean unconstrained charge of a block, nats", number(found["mean_charge"])],
    ]
    if "expected_blocks" in found:
        rows += [
            ["E[N], i.i.d. model (certified)", interval(found["expected_blocks"])],
            ["Wald bounds of E[N] (A9)", f"({number(found['bounds'][0])}, {number(found['bounds'][1])}]"],
        ]
    notes = ["N: first block in which the budget test rejects. The i.i.d. model keeps match rate and regret law only."]
    return {"title": "Exhaustion of the budget", "columns": ["quantity", "value"], "rows": rows, "notes": notes}


def _frontier(points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kept = sorted((p for p in points if p["frontier"]), key=lambda p: p["nats_per_token"])
    names = ("budget", "gate", "cap", "extra_per_call", "nats_per_token")
    return {
        "title": f"Frontier of {len(points)} settings",
        "columns": ["budget", "gate", "cap", "extra tokens per call", "nats given up per token"],
        "rows": [[number(p[name]) for name in names] for p in kept],
        "notes": ["no other setting of the sweep gains more for no more log-likelihood."],
    }


def _published(summary: Mapping[str, Any]) -> dict[str, Any]:
    suffix, showcase = (summary["measured"][k] for k in ("published 8, .25, 2", "published 2.0625 twice, 1"))
    tokens = f"{_percent(suffix['tokens_gain'])} committed tokens per call"
    ours = (
        tokens,
        tokens,
        f"{_percent(showcase['acceptance_gain'])} accepted drafts",
        f"{number(showcase['nats_per_request'].upper)} over {summary['requests']} requests",
    )
    rows = [[what, value, where, mine] for (what, value, where), mine in zip(PUBLISHED, ours)]
    return {
        "title": "Beside the published effects: DIFFERENT MODELS",
        "columns": ["quantity", "published", "published on", "this audit, same settings"],
        "rows": rows,
        "notes": [
            "published: 2608.03447, not reproduced by arithmetic. Here no time is measured: committed tokens per call over strict on",
            "recorded blocks stand beside throughput (suffix 8, .25, 2; normalized 2.0625, 2.0625, 1 for the DeepSeek lines).",
        ],
    }


def _percent(x: Any) -> str:
    return f"{100 * x.upper:+.1f} %"


def _span(x: Any) -> str:
    return f"[{number(x.lower)}, {number(x.upper)}]"
