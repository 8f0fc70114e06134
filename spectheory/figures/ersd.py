"""Figures of ERSD: tokens against budget with all bounds, the rank law, the drawn tree, peers, counterexamples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .style import COLORS, COLUMN, GREY, PAGE, figure, look, style

SHOWN_NODES = 40  # more cannot be read


def tokens(data: Mapping[str, Any]) -> Figure:
    """Expected tokens per call against the draft budget k, log axis. `data`: `budgets` [k], `averaged` (best tree),

    bounds `leaf`, `vfree`, `paper` and optional `lower` (same length), `entropy` in nats; optional `rows` {k: mean over
    each row's own best tree}, `chain`, `standard`. The dotted asymptote is ln k / H[R].
    """
    k = np.array(data["budgets"])
    with style():
        made, axes = figure(PAGE * 0.62, 3.2)
        lines = {
            "leaf": ("leaf bound", "-", 1),
            "paper": ("paper bound", (0, (4, 3)), 4),
            "vfree": ("V-free bound", "-", 2),
            "lower": ("lower bound", "-", 5),
        }
        for name, (label, dash, colour) in lines.items():
            if name in data:
                positive = np.array(data[name]) > 0
                axes.plot(
                    k[positive], np.array(data[name])[positive], ls=dash, lw=1.0, color=COLORS[colour], label=label
                )
        axes.plot(k, data["averaged"], color=COLORS[0], lw=1.6, label="best tree", zorder=3)
        if data.get("rows"):
            own = sorted((int(b), x) for b, x in data["rows"].items())
            axes.plot(*zip(*own), color=COLORS[0], ls=":", lw=1.1, label="each row's own best tree")
        for name, label, i in (("chain", "ERSD chain", 3), ("standard", "standard chain", 6)):
            if name in data:
                axes.plot(k, data[name], color=COLORS[i], ls="-.", lw=1.0, label=label)
        axes.plot(k, np.log(k) / data["entropy"], color=GREY, ls=(0, (1, 2)), lw=1.0, label="ln k / H[R]")
        axes.set(xscale="log", xlabel="drafted tokens k per call", ylabel="expected tokens per call")
        axes.set_ylim(0, 1.05 * float(np.max(data["paper"])))
        made.legend(loc="outside right center")
    return made


def ranks(data: Mapping[str, Any]) -> Figure:
    """The rank law on a log axis. `data`: `law` [P(R = 1), ...], `tail` P(R > the last)."""
    law = np.array(data["law"])
    with style():
        made, axes = figure(COLUMN, 2.3)
        r = np.arange(1, len(law) + 1)
        axes.bar(r, law, color=COLORS[0], width=0.7, label="P(R = r)")
        beyond = np.maximum(data["tail"] + law[::-1].cumsum()[::-1] - law, 0)
        seen = beyond > 0
        axes.plot(r[seen], beyond[seen], **look(1), ms=3, lw=0.9, label="P(R > r)")
        low = max(1e-9, 0.3 * float(min([*law[law > 0], *beyond[seen]])))
        axes.set(yscale="log", ylim=(low, 1.3), xlabel="rank r of the target's token in the draft order")
        axes.set_ylabel("probability")
        axes.legend()
    return made


def tree(data: Mapping[str, Any]) -> Figure:
    """A drafted tree, most probable nodes first. `data`: `parent`, `rank`, `prob`; at most 40 nodes are drawn."""
    parent, rank, prob = (data[x][:SHOWN_NODES] for x in ("parent", "rank", "prob"))
    depth, place = _layout(parent, rank)
    with style():
        made, axes = figure(PAGE, 1.1 + 0.42 * (max(depth, default=0) + 1))
        xs, ys = [place[-1], *(place[v] for v in range(len(parent)))], [0, *(-d for d in depth)]
        for v, a in enumerate(parent):
            axes.plot([xs[a + 1], xs[v + 1]], [ys[a + 1], ys[v + 1]], color=GREY, lw=0.4 + 2.6 * prob[v], zorder=1)
        axes.scatter(xs[1:], ys[1:], s=95, color="white", edgecolor=COLORS[0], linewidth=0.8, zorder=2)
        axes.scatter(xs[:1], ys[:1], s=60, color=COLORS[0], marker="s", zorder=2)
        for v, r in enumerate(rank):
            axes.annotate(str(r), (xs[v + 1], ys[v + 1]), ha="center", va="center", fontsize=6)
        more = len(data["parent"]) - len(parent)
        note = "nodes: rank in the draft order; edge width: probability that the walk passes"
        axes.set_title(note + (f"; {more} less likely nodes not drawn" if more > 0 else ""), loc="left", fontsize=7)
        axes.set_axis_off()
        axes.margins(0.04, 0.12)
    return made


def _layout(parent: list[int], rank: list[int]) -> tuple[list[int], dict[int, float]]:
    """(depth of each node, horizontal place of each node and of the root -1): leaves side by side, parents centred."""
    depth: list[int] = []
    children: dict[int, list[int]] = {}
    for v, a in enumerate(parent):
        depth.append(1 if a < 0 else depth[a] + 1)
        children.setdefault(a, []).append(v)
    place: dict[int, float] = {}
    leaf = 0
    stack = [(-1, False)]
    while stack:
        v, done = stack.pop()
        below = sorted(children.get(v, []), key=lambda c: rank[c])
        if not below:
            place[v] = float(leaf)
            leaf += 1
        elif done:
            place[v] = sum(place[c] for c in below) / len(below)
        else:
            stack += [(v, True), *((c, False) for c in reversed(below))]
    return depth, place


def peers(data: Mapping[str, Any]) -> Figure:
    """ERSD against other list rules: acceptance by list size m. `data`: `lists` [m], `peers` {rule: [acceptance]}."""
    with style():
        made, axes = figure(PAGE * 0.62, 2.9)
        for i, (name, values) in enumerate(data["peers"].items()):
            axes.plot(data["lists"], values, label=name, lw=2.0 if name == "ERSD" else 0.9, ms=3.5, **look(i))
        axes.set(xlabel="drafts m at one position", ylabel="probability that one is emitted")
        axes.set_xticks(data["lists"])
        axes.set_ylim(top=1.005)
        made.legend(loc="outside right center")
    return made


def gallery(data: Mapping[str, Any]) -> Figure:
    """Where readings of the theory break (E3): one panel a counterexample. `data`: `panels` [{"title", "labels",

    "values", optional "limit": {"label", "value"}}]; bars against the value that the false claim asks for.
    """
    panels = data["panels"]
    columns = min(3, len(panels))
    lines = math.ceil(len(panels) / columns)
    with style():
        made, axes = figure(PAGE, 1.9 * lines, nrows=lines, ncols=columns, squeeze=False)
        for i, panel in enumerate(panels):
            at = axes[i // columns][i % columns]
            at.bar(np.arange(len(panel["values"])), panel["values"], color=COLORS[0], width=0.62)
            for x, value in enumerate(panel["values"]):
                at.annotate(f"{value:.3g}", (x, value), ha="center", va="bottom", fontsize=6)
            if "limit" in panel:
                at.axhline(panel["limit"]["value"], color=COLORS[1], ls="--", lw=1.0)
                at.annotate(
                    panel["limit"]["label"],
                    (0.99, panel["limit"]["value"]),
                    xycoords=("axes fraction", "data"),
                    ha="right",
                    va="bottom",
                    fontsize=6,
                    color=COLORS[1],
                )
            at.set_xticks(np.arange(len(panel["labels"])), panel["labels"])
            at.set_xlim(-0.7, max(len(panel["values"]) - 0.3, 2.3))
            top = max([*panel["values"], panel.get("limit", {"value": 0.0})["value"]])
            at.set_ylim(0, 1.22 * top)
            at.set_title(panel["title"], fontsize=7, loc="left")
        for i in range(len(panels), lines * columns):
            axes[i // columns][i % columns].set_axis_off()
    return made
