"""Figures of black-box audits: the operating characteristic, simulated from exact laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from .style import COLORS, GREY, PAGE, figure, look, style

SHOWN = ("M2", "M5", "M6", "M22", "D3", "J2", "C1")  # of the curves on the left; the right panel has every specimen


def operating_characteristic(data: Mapping[str, Any]) -> Figure:
    """Rejection probability along the sample (left) and at the designed sample size, every specimen (right).

    `data` is what `audit.blackbox.characteristic.operating_characteristic` returns; bars are 99.9 % intervals.
    """
    specimens = data["specimens"]
    with style():
        made, (left, right) = figure(PAGE, 3.4, ncols=2, width_ratios=(1, 1.15))
        shown = [s for s in specimens if s["id"] in SHOWN]
        for i, s in enumerate(shown):
            x, y = [p["n"] / s["n"] for p in s["points"]], [p["rate"] for p in s["points"]]
            left.plot(x, y, label=f"{s['id']}: TV {s['tv']:.3g}, n = {s['n']:,}", lw=0.9, ms=3, **look(i))
        left.axhline(1 - data["miss"], color=GREY, lw=0.7, ls="--")
        left.set(xlabel="draws / designed sample size", ylabel="probability of rejection", ylim=(-0.03, 1.05))
        left.legend(loc="lower right", fontsize=6)
        _at_design(right, data)
    return made


def _at_design(axes: Any, data: Mapping[str, Any]) -> None:
    specimens = sorted(data["specimens"], key=lambda s: (s["lossless"], -s["tv"]))
    for i, s in enumerate(specimens):
        at = s["points"][-1]
        color = COLORS[2] if s["lossless"] else COLORS[1]
        below, above = at["rate"] - at["lower"], at["upper"] - at["rate"]
        axes.errorbar(i, at["rate"], yerr=[[below], [above]], color=color, ms=3, lw=0.8, marker="o")
    axes.axhline(data["alpha"], color=GREY, lw=0.7, ls=":")
    axes.set_xticks(range(len(specimens)), [s["id"] for s in specimens], rotation=90, fontsize=6)
    axes.set(ylim=(-0.03, 1.05), xlabel="specimen: broken (orange, by falling TV), lossless (green)")
    axes.set_title(f"at the designed size, {data['runs']:,} simulated audits each", fontsize=7)
