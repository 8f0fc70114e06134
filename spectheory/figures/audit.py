"""Figures of an audit: where a rule lies between deviation and acceptance, its sweep, and how rows differ."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .style import COLORS, COLUMN, GREY, LIGHT, PAGE, figure, look, save, style


def plane(data: Mapping[str, Any]) -> Figure:
    """The deviation-acceptance plane. `data`: mean `tv`, `points` [{label, acceptance, deviation}], `curves` [{label,
    acceptance [..], deviation [..], values [..]}].

    No rule lies below the line P(reject) + deviation = TV(p, q) (Yin et al. 2411.00841; theorem N2).
    """
    tv = data["tv"]
    with style():
        made, axes = figure(COLUMN, 2.9)
        points = data["points"]
        low = min([1 - tv, *(p["acceptance"] for p in points), *(a for c in data["curves"] for a in c["acceptance"])])
        high = max([tv, *(p["deviation"] for p in points), *(d for c in data["curves"] for d in c["deviation"])])
        axes.fill_between([1 - tv, 1], [0, tv], color=LIGHT, lw=0)
        axes.plot([1 - tv, 1], [0, tv], color=GREY, lw=0.8, ls="--", label="optimal line", zorder=1)
        axes.annotate("no rule here", (1 - tv / 3, tv / 12), ha="center", va="bottom", fontsize=6, color=GREY)
        for i, curve in enumerate(data["curves"]):
            kept = look(i)
            axes.plot(curve["acceptance"], curve["deviation"], lw=0.8, ms=2.2, alpha=0.8, **kept)
        for i, point in enumerate(points):
            axes.plot(
                point["acceptance"],
                point["deviation"],
                ls="none",
                ms=5.5,
                mec="white",
                mew=0.5,
                label=point["label"],
                **look(i),
                zorder=3,
            )
        pad = 0.04
        axes.set(xlim=(max(low - pad, -0.02), 1.01), ylim=(-0.03 * high if high else -0.01, high * 1.08 or 0.1))
        axes.set(xlabel="acceptance rate", ylabel="deviation TV(emitted, target)")
        many = len(points) > 4
        made.legend(loc="outside lower center", ncols=2 if many else 1, handletextpad=0.4, columnspacing=1.0)
        if many:
            made.set_size_inches(COLUMN, 2.7 + 0.13 * len(points))
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
    with style():
        made, axes = figure(PAGE, 2.1, ncols=3, sharey=True)
        labels = {
            "deviation": "deviation of a row",
            "acceptance": "acceptance of a row",
            "tv": "TV(target, draft) of a row",
        }
        for i, (name, label) in enumerate(labels.items()):
            x = np.asarray(data[name])
            share = np.arange(1, len(x) + 1) / len(x)
            axes[i].step([0, *x, 1], [0, *share, 1], where="post", color=COLORS[i])
            mean = float(x.mean())
            axes[i].axvline(mean, color=GREY, lw=0.8, ls=":")
            axes[i].annotate(
                f"mean {mean:.3g}", (mean, 0.02), xytext=(3, 0), textcoords="offset points", fontsize=6, color=GREY
            )
            axes[i].set(xlabel=label, xlim=(-0.02, 1.02), ylim=(0, 1.02))
        axes[0].set_ylabel("share of rows")
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
        curves = [_curve(c["rule"], c["points"]) for c in report["sweep"]]
    elif "deviation" in summary:
        entries = [(_title(report["verifier"]), summary)]
        curves = [_curve("sweep", report["sweep"])] if report["sweep"] else []
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


def _title(verifier: Mapping[str, Any]) -> str:
    inside = ", ".join(f"{k}={v}" for k, v in verifier["settings"].items())
    return f"{verifier['rule']}({inside})" if inside else str(verifier["rule"])
