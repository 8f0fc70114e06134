"""Figures of an audit: where a rule lies between deviation and acceptance, its sweep, and how rows differ."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .style import COLORS, COLUMN, GREY, LIGHT, figure, look, save, style


def plane(data: Mapping[str, Any]) -> Figure:
    """The deviation-acceptance plane. `data`: mean `tv`, `points` [{label, acceptance, deviation}], `curves` [{label,
    acceptance [..], deviation [..], values [..]}]; a curve looks like the point of its label.

    No rule lies below the line P(reject) + deviation = TV(p, q) (Yin et al. 2411.00841; theorem V.line).
    """
    tv, points, curves = data["tv"], data["points"], data["curves"]
    many = len(points) > 4
    looks = {p["label"]: look(i) for i, p in enumerate(points)}
    with style():
        columns = 2 if many and max(len(p["label"]) for p in points) <= 34 else 1
        made, axes = figure(COLUMN, 2.65 + 0.11 * -(-(len(points) + 1) // columns))
        low = min([1 - tv, *(p["acceptance"] for p in points), *(a for c in curves for a in c["acceptance"])])
        high = max([tv, *(p["deviation"] for p in points), *(d for c in curves for d in c["deviation"])])
        axes.fill_between([1 - tv, 1], [0, tv], color=LIGHT, lw=0)
        axes.plot([1 - tv, 1], [0, tv], color=GREY, lw=0.8, ls="--", label="optimal line", zorder=1)
        axes.annotate("no rule here", (1 - tv / 20, tv / 20), ha="right", va="bottom", fontsize=6, color=GREY)
        for curve in curves:
            kept = looks[curve["label"]]
            axes.plot(curve["acceptance"], curve["deviation"], lw=0.8, ms=2.2, alpha=0.8, **kept)
        for point in points:
            kept = {"ls": "none", "ms": 5.5, "mec": "white", "mew": 0.5, "zorder": 3, **looks[point["label"]]}
            axes.plot(point["acceptance"], point["deviation"], label=point["label"], **kept)
        pad = 0.04 * (1 - low) or 0.01
        axes.set(xlim=(low - pad, 1 + pad), ylim=(-0.03 * high if high else -0.01, high * 1.08 or 0.1))
        axes.set(xlabel="acceptance rate", ylabel="deviation TV(emitted, target)")
        small = {"fontsize": 6, "columnspacing": 0.8} if many else {}
        made.legend(loc="outside lower center", handletextpad=0.2, ncols=columns, **small)
    return made


def sweep(data: Mapping[str, Any]) -> Figure:
    """Deviation and acceptance against the rule's parameter. `data`: `parameter`, `values`, `deviation`, `acceptance`."""
    with style():
        made, axes = figure(COLUMN, 2.2)
        for i, name in enumerate(("deviation", "acceptance")):
            axes.plot(data["values"], data[name], label=name, **look(i))
        axes.set(xlabel=data["parameter"], ylim=(-0.02, 1.02))
        axes.legend(loc="center left", bbox_to_anchor=(0, 0.5))
    return made


def distributions(data: Mapping[str, Any]) -> Figure:
    """How rows differ: the share of rows at or below each value. `data`: sorted `deviation`, `acceptance`, `tv`, per row."""
    labels = {"deviation": "deviation", "acceptance": "acceptance", "tv": "TV(target, draft)"}
    with style():
        made, axes = figure(COLUMN, 2.6)
        for i, (name, label) in enumerate(labels.items()):
            x = np.asarray(data[name])
            share = np.arange(1, len(x) + 1) / len(x)
            line = {"where": "post", "color": COLORS[i], "ls": ("-", "--", "-.")[i]}
            axes.step([0, *x, 1], [0, *share, 1], label=f"{label}, mean {x.mean():.3g}", **line)
        axes.set(xlabel="value of a row", ylabel="share of rows", xlim=(-0.02, 1.02), ylim=(0, 1.02))
        made.legend(loc="outside lower center")
    return made


def save_all(report: Mapping[str, Any], out: Path, rows: Mapping[str, Any]) -> list[Path]:
    """Draw what a report (as JSON data) has figures for, and those it asks for in `extra.figures`:

    [{"module": a module of this package, "function", "name", "data"}].
    """
    paths = []
    for name, draw, data in _own(report, rows):
        paths += save(draw(data), out / name, data)
    for wanted in report["extra"].get("figures", []):
        draw = getattr(import_module(f"{__package__}.{wanted['module']}"), wanted["function"])
        paths += save(draw(wanted["data"]), out / wanted["name"], wanted["data"])
    return paths


def _own(report: Mapping[str, Any], rows: Mapping[str, Any]) -> list[tuple[str, Any, dict[str, Any]]]:
    summary = report["summary"]
    tv = _middle((summary.get("tv") or {}).get("on_data"))
    if tv is None:
        return []
    if "rules" in summary:
        entries = [(r["rule"], r) for r in summary["rules"] if "deviation" in r]
        # rules on the optimal line all have the same curve: the line
        off = {r["rule"] for r in summary["rules"] if (_middle(r.get("gap", {}).get("on_data")) or 0) > 1e-9}
        curves = [_curve(c["rule"], c["points"]) for c in report["sweep"] if c["rule"] in off]
    elif "deviation" in summary:
        entries = [(report["verifier"]["title"], summary)]
        curves = [_curve(entries[0][0], report["sweep"])] if report["sweep"] else []
    else:
        return []
    points = [
        {"label": label, **{k: _middle(s[k]["on_data"]) for k in ("acceptance", "deviation")}} for label, s in entries
    ]
    out: list[tuple[str, Any, dict[str, Any]]] = [("plane", plane, {"tv": tv, "points": points, "curves": curves})]
    if "rules" not in summary and curves:
        out.append(("sweep", sweep, {"parameter": report["sweep"][0]["parameter"], **curves[0]}))
    if "tv" in rows:
        out.append(("rows", distributions, {k: np.sort(rows[k]).tolist() for k in ("deviation", "acceptance", "tv")}))
    return out


def _curve(label: str, points: list[Any]) -> dict[str, Any]:
    kept = [p for p in points if p["deviation"]["on_data"] is not None]
    values = {k: [_middle(p[k]["on_data"]) for p in kept] for k in ("acceptance", "deviation")}
    return {"label": label, "values": [p["value"] for p in kept], **values}


def _middle(interval: Mapping[str, Any] | None) -> float | None:
    if interval is None:
        return None
    if interval["estimate"] is not None:
        return float(interval["estimate"])
    return (float(interval["lower"]) + float(interval["upper"])) / 2
