"""The report in a terminal. Special audits add tables of their own as plain data: `extra["sections"]`.

A section is {"title": str, "columns": [str], "rows": [[value]], "notes": [str], "prose": [column of text, by name]}; both
renderers show it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..results import AuditReport, Interval
from .verdict import BROKEN, INCONCLUSIVE, NONE, NOT_REJECTED, REJECTED

LABELS = {
    "deviation": "deviation TV(emitted, target)",
    "acceptance": "acceptance rate",
    "tv": "TV(target, draft)",
    "gap": "gap to the optimal line",
    "tokens_per_call": "expected tokens per call",
    "kl_target_output": "KL(target || emitted), nats",
    "kl_output_target": "KL(emitted || target), nats",
    "max_ratio": "largest emitted / target ratio",
}
COLORS = {"holds": "green", "refuted": "red", "undecided": "yellow"}
LIKE = {NOT_REJECTED: "holds", REJECTED: "refuted", INCONCLUSIVE: "undecided"}
Section = Mapping[str, Any]


def number(x: Any) -> str:
    """Four significant digits, no needless zeros; infinities and gaps in words."""
    if x is None:
        return "-"
    if isinstance(x, bool | str):
        return str(x)
    if isinstance(x, int):
        return f"{x:,}"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return f"{x:.4g}" if abs(x) >= 1e-12 else "0"  # below that lies the rounding of float64 sums


def interval(x: Interval | None) -> str:
    """`.12`, or `[.10, .15]`, or `.12 in [.10, .15]`."""
    if x is None:
        return "-"
    if x.lower == x.upper:
        return number(x.upper)
    span = f"[{number(x.lower)}, {number(x.upper)}]"
    return span if x.estimate is None else f"{number(x.estimate)} in {span}"


def sections(report: AuditReport) -> list[Section]:
    """The tables of a report, in order, as plain data: what the terminal and the HTML show."""
    out = [_compared(report)] if "rules" in report.summary else _audited(report)
    out += list(report.extra.get("sections", []))
    if report.worst_rows and "rules" not in report.summary and "gained" in report.worst_rows[0]:
        out.append(_worst(report))
    if report.errors:
        rows = [[e.get("shard") or "-", number(e.get("row")), e["cause"]] for e in report.errors]
        out.append({"title": f"Bad rows, left out ({len(rows)})", "columns": ["shard", "row", "cause"], "rows": rows})
    return out


def _audited(report: AuditReport) -> list[Section]:
    summary = report.summary
    if "deviation" not in summary or "on_data" not in summary["deviation"]:
        return []
    rows = []
    for name, label in LABELS.items():
        figure = summary.get(name)
        if figure is not None:
            q = figure["quantiles"]
            rows.append(
                [
                    label,
                    interval(figure["on_data"]),
                    _plus(figure["standard_error"]),
                    *(_span(figure.get(k)) for k in ("population", "model")),
                    *(number(q.get(k)) for k in ("median", "p95", "max")),
                ]
            )
    columns = [
        "mean over the rows",
        "on data",
        "std. error",
        "population, 95 %",
        "model (rounding)",
        "median",
        "p95",
        "max",
    ]
    out: list[Section] = [
        {"title": "Deviation and what it buys", "columns": columns, "rows": rows, "notes": _notes(report)}
    ]
    if report.sweep:
        kinds = ("deviation", "acceptance")
        points = [
            [number(p["value"]), *(interval(p[k]["on_data"]) for k in kinds), _span(p["deviation"]["population"])]
            for p in report.sweep
        ]
        name = report.sweep[0]["parameter"]
        columns = [name, "deviation", "acceptance", "deviation, population, 95 %"]
        out.append({"title": f"Sweep over {name}", "columns": columns, "rows": points})
    return out


def _notes(report: AuditReport) -> list[str]:
    s = report.summary
    tokens, nucleus, contract = s["tokens_per_call"], s["nucleus"], s["drafts_follow_q"]
    notes = [f"on data: exact for the stored laws. {s['method']}. {s['requests']} requests here."]
    if report.extra.get("tv_floor"):
        floor = f"{report.extra['tv_floor']:.1e}"
        notes.append(
            f"model: what rounding the models' logits (TV {floor} a row) can have cost; deviation over all nuclei inside the band."
        )
    notes.append(f"expected tokens: blocks of {tokens['block']}, given the {tokens['given']}.")
    partly = {LABELS.get(k, k): v["unknown"] for k, v in s.items() if isinstance(v, Mapping) and v.get("unknown")}
    notes += [f"{label}: not known for {n} and taken over the others." for label, n in partly.items()]
    if "quantiles" in nucleus:
        q = nucleus["quantiles"]
        size = f"nucleus at top_p = {nucleus['top_p']:g}: median {q['median']:,}, largest {q['max']:,} tokens"
        notes.append(f"{size}; decided by rounding of the sums in {nucleus['ambiguous']} rows.")
    if contract["tested"]:
        verdict = "refuted" if contract["refuted"] else "not refuted"
        notes.append(
            f"drafts follow the declared q: {verdict} ({contract['tested']} drafts, p-value at most {contract['p_value']:.2g})."
        )
    eos = s.get("after_eos", {})
    if eos.get("rows_behind_eos"):
        notes.append(
            f"{eos['rows_behind_eos']} rows lie behind an end of text; acceptance without them {interval(eos['acceptance']['on_data'])}."
        )
    return notes


def _compared(report: AuditReport) -> Section:
    rows = []
    for entry in report.summary["rules"]:
        values = [entry.get(k, {}) for k in ("acceptance", "deviation", "gap", "tokens_per_call")]
        rows.append(
            [
                entry["rule"],
                *(interval(v.get("on_data")) for v in values),
                _span(entry.get("deviation", {}).get("population")),
            ]
        )
    columns = ["rule", "acceptance", "deviation", "gap to line", "tokens per call", "deviation, population, 95 %"]
    line = report.summary["tv"]["on_data"] if report.summary.get("tv") else None
    notes = [
        f"optimal line: P(reject) + deviation = TV(target, draft), here {interval(line)} on average; no rule lies below it."
    ]
    return {
        "title": "Rules on the same rows",
        "columns": columns,
        "rows": rows,
        "notes": [*notes, f"{report.summary['method']}."],
    }


def _worst(report: AuditReport) -> Section:
    rows = [
        [place(w), number(w["deviation"]), number(w["acceptance"]), token(w["drafted"])]
        + [_moved(w[side], sign) for side, sign in (("gained", "+"), ("lost", "-"))]
        for w in report.worst_rows
    ]
    columns = ["row", "deviation", "acceptance", "drafted", "emitted more often", "emitted less often"]
    notes = [
        "by how much a token's probability is above or below the target's; the context of each row is in report.json."
    ]
    return {"title": "Worst rows", "columns": columns, "rows": rows, "notes": notes}


def place(row: Mapping[str, Any]) -> str:
    """`shard-00000:28`: where to find a row."""
    return f"{str(row['shard']).removesuffix('.safetensors')}:{row['row']}"


def token(t: Mapping[str, Any]) -> str:
    """A token as text where it is known, else its id; white space made visible."""
    text = t.get("text")
    return repr(text) if text is not None else f"#{t['id']}" if t["id"] >= 0 else "-"


def _moved(tokens: list[Any], sign: str) -> str:
    return ", ".join(f"{token(t)} {sign}{t['mass']:.2g}" for t in tokens if t["mass"] >= 0.005) or "-"


def _plus(x: float | None) -> str:
    return "-" if x is None else f"\N{PLUS-MINUS SIGN}{number(x)}"


def _span(x: Interval | None) -> str:
    return "-" if x is None else f"[{number(x.lower)}, {number(x.upper)}]"


def headline(report: AuditReport) -> str:
    """The verdict in one line; empty where nothing was claimed."""
    s = report.summary
    if report.verdict == NONE:
        return ""
    if not s.get("rows") and "rules" not in s:
        if "statement" in s:
            return f"{report.verdict} ({s['statement']})"
        return "no row could be audited" if "rows" in s else report.verdict
    return f"{report.verdict.upper()}: {report.claim}" if report.claim else report.verdict


def summary_line(report: AuditReport) -> str:
    """What the rule buys and costs, in a sentence; empty where the report has other figures."""
    s = report.summary
    if "lossless" not in s or "deviation" not in s:
        return ""
    share = {
        k: _percent(x) for k, x in (("own", s["acceptance"]["on_data"]), ("lossless", s["lossless"]["acceptance"]))
    }
    text = f"accepts {share['own']} of drafts (the standard rule: {share['lossless']})"
    own, other = s["tokens_per_call"]["on_data"], s["lossless"]["tokens_per_call"]
    if own is not None and other is not None:
        text += f", {own.upper:.3g} tokens per target call (standard: {other.upper:.3g})"
    return f"{text}, at a mean deviation of {interval(s['deviation']['on_data'])}"


def _percent(x: Interval) -> str:
    return f"{100 * x.upper:.1f} %" if x.lower == x.upper else f"{100 * x.lower:.1f} to {100 * x.upper:.1f} %"


def tone(report: AuditReport) -> str:
    """Which of COLORS a verdict takes; "none" without one."""
    if report.verdict.startswith(BROKEN):
        return "refuted"
    word = LIKE.get(report.verdict, report.verdict)
    return word if word in COLORS else "none"


def title(report: AuditReport) -> str:
    if "compare" in report.verifier:
        return f"{len(report.verifier['compare'])} rules compared"
    return str(report.verifier.get("title") or report.verifier.get("rule") or "audit")


def source_line(report: AuditReport) -> str:
    """Which rows: where from, how many, under which settings."""
    source, s = report.source, report.summary
    models = source.get("models") or {}
    pair = ", ".join(f"{k} {v}" for k, v in models.items() if isinstance(v, str | int | float))
    counts = ", ".join(f"{s[k]:,} {k}" for k in ("rows", "blocks", "requests") if s.get(k))
    request = ", ".join(f"{k}={v}" for k, v in (source.get("request") or {}).items())
    parts = [str(source.get("name", "")), counts, pair, f"request {request}" if request else ""]
    return "; ".join(p for p in parts if p)


def render(report: AuditReport) -> Group:
    """The report as a rich renderable."""
    color = COLORS.get(tone(report), "cyan")
    lines = {
        title(report): "bold",
        source_line(report): "",
        summary_line(report): "",
        headline(report): f"bold {color}",
    }
    head = Text("\n").join(Text(line, style) for line, style in lines.items() if line)
    return Group(
        Panel(head, title="spectheory audit", title_align="left", box=box.ROUNDED),
        *(_table(s) for s in sections(report)),
    )


def _table(section: Section) -> Group:
    table = Table(title=section["title"], title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(section["columns"]):
        left = i == 0 or column in section.get("prose", [])
        table.add_column(column, justify="left" if left else "right", overflow="fold")
    for row in section["rows"]:
        table.add_row(*(Text(number(x)) for x in row))
    return Group(table, *(Text(f"  {note}", style="dim") for note in section.get("notes", [])), Text(""))


def print_report(report: AuditReport, console: Console | None = None) -> None:
    """Print to stdout, at the terminal's width; at least 100 columns where the output is no terminal."""
    console = console or Console()
    if not console.is_terminal and console.width < 120:
        console = Console(width=120)
    console.print(render(report))
