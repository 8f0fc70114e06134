"""Figures of whole sequences: deviation against horizon with every bound, and deviation against speed-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from .style import COLUMN, GREY, MARKERS, PAGE, figure, look, style


def horizon(data: Mapping[str, Any]) -> Figure:
    """Deviation of T tokens against T. `data`: `lengths` [..]; `upper`, `lower` {name: [..]} certified bounds; optional
    `exact` [..] and `estimate` {middle [..], low [..], high [..]}.

    Upper bounds are drawn up to 1, beyond which they say nothing.
    """
    x = data["lengths"]
    with style():
        many = len(data["upper"]) + len(data["lower"]) > 3
        made, axes = figure(PAGE if many else COLUMN, 2.9 if many else 2.5)
        for i, (name, values) in enumerate(data["upper"].items()):
            axes.plot(x, [min(v, 1.0) for v in values], label=name, lw=0.9, ms=3, ls="-" if i < 7 else "-.", **look(i))
        for i, (name, values) in enumerate(data["lower"].items()):
            axes.plot(x, values, label=name, lw=0.9, ms=3, ls=":", mfc="white", color=GREY, marker=MARKERS[i])
        if data.get("exact"):
            axes.plot(x, data["exact"], color="black", lw=1.8, label="exact", zorder=4)
        if data.get("estimate"):
            e = data["estimate"]
            axes.fill_between(x, e["low"], e["high"], color=GREY, alpha=0.25, lw=0, label="interval of the estimate")
            axes.plot(x, e["middle"], color="black", lw=1.0, ls="--", label="estimate", zorder=4)
        axes.set(xscale="log", xlabel="tokens T", ylabel="deviation TV over T tokens", ylim=(-0.02, 1.04))
        axes.set_xticks(x, [f"{t:,}" if t < 10_000 else f"{t:.2g}" for t in x])
        axes.minorticks_off()
        if many:
            made.legend(loc="outside right center")
        else:
            axes.legend(loc="upper left")
    return made


def trade_off(data: Mapping[str, Any]) -> Figure:
    """Deviation against speed-up as a rule's parameter sweeps. `data`: `parameter`, `curves` [{label, speedup [..],
    deviation [..], values [..]}], optional `cap` (speed-up that no rule exceeds).

    The points of the lowest curve carry the parameter's values.
    """
    with style():
        made, axes = figure(COLUMN, 3.2)
        for i, curve in enumerate(data["curves"]):
            axes.plot(curve["speedup"], curve["deviation"], label=curve["label"], ms=3, **look(i))
        lowest = min(data["curves"], key=lambda c: sum(c["deviation"]))
        for value, x, y in zip(lowest["values"], lowest["speedup"], lowest["deviation"]):
            axes.annotate(
                f"{value:g}", (x, y), xytext=(0, -8), textcoords="offset points", fontsize=5.5, color=GREY, ha="center"
            )
        if data.get("cap") is not None:
            axes.axvline(data["cap"], color=GREY, lw=0.8, ls="--")
            at = (data["cap"], 0.6)
            axes.annotate("no rule beyond", at, rotation=90, fontsize=6, color=GREY, ha="right", va="center")
        axes.set(xlabel="speed-up over autoregressive decoding", ylabel="deviation TV", ylim=(-0.08, 1.04))
        made.legend(loc="outside lower center", title=f"sweep of {data['parameter']}", title_fontsize=7)
    return made


def break_even(data: Mapping[str, Any]) -> Figure:
    """The least acceptance rate that reaches a speed-up, against the draft's cost ratio. `data`: `cost_ratio` [..] and
    `panels` [{speedup, curves [{block_size, acceptance [.. or None where no rule reaches it]}]}]."""
    with style():
        made, axes = figure(PAGE, 2.5, ncols=len(data["panels"]), sharey=True, squeeze=False)
        for at, panel in zip(axes[0], data["panels"]):
            for i, curve in enumerate(panel["curves"]):
                at.plot(
                    data["cost_ratio"],
                    [float("nan") if a is None else a for a in curve["acceptance"]],
                    label=f"K = {curve['block_size']}",
                    ms=2.5,
                    **look(i),
                )
            x, top = data["cost_ratio"], f"speed-up {panel['speedup']:g}"
            at.set(xlabel="draft time / target time", xlim=(-0.02 * x[-1], x[-1]), ylim=(-0.02, 1.02), title=top)
        axes[0][0].set_ylabel("least acceptance rate")
        axes[0][-1].legend(loc="lower right")
    return made
