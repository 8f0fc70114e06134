"""Figures of an ASD audit: the ledger of one request, the frontier of settings, the exhaustion of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from .style import COLORS, COLUMN, GREY, LIGHT, PAGE, figure, look, style


def ledger(data: Mapping[str, Any]) -> Figure:
    """What one request spent, exception by exception. `data`: `request`, `budget`, `size`, `blocks`, `charges` [{block,
    position, regret, spent}], `refused` [block]."""
    with style():
        made, axes = figure(COLUMN, 2.4)
        budget = float(data["budget"])  # JSON writes infinity as "inf"
        at = [c["block"] + (c["position"] + 0.5) / data["size"] for c in data["charges"]]
        total = [c["spent"] for c in data["charges"]]
        axes.step([0, *at, data["blocks"]], [0, *total, total[-1] if total else 0], where="post", color=COLORS[0])
        axes.vlines(at, 0, [c["regret"] for c in data["charges"]], color=COLORS[1], lw=1.2, label="regret paid")
        if math.isfinite(budget):
            axes.axhline(budget, color=GREY, ls="--", lw=0.8)
            axes.annotate("budget", (0, budget), xytext=(2, 2), textcoords="offset points", fontsize=6, color=GREY)
        if data["refused"]:
            marks = [b + 0.5 for b in data["refused"]]
            axes.plot(
                marks,
                [0] * len(marks),
                ls="none",
                marker="x",
                ms=4,
                color=COLORS[3],
                clip_on=False,
                label="budget refuses",
            )
        axes.plot([], [], color=COLORS[0], label="spent so far")
        top = budget if math.isfinite(budget) else max(total, default=1)
        axes.set(
            xlabel=f"block of request {data['request']}",
            ylabel="nats",
            xlim=(0, data["blocks"]),
            ylim=(0, 1.12 * top or 1),
        )
        made.legend(loc="outside lower center", ncols=3, handletextpad=0.4, columnspacing=1.0)
    return made


def frontier(data: Mapping[str, Any]) -> Figure:
    """Extra tokens per call against log-likelihood given up per token. `data`: `points` [{extra_per_call, nats_per_token,
    cap, frontier}], `marks` [{label, extra_per_call, nats_per_token}]."""
    with style():
        made, axes = figure(COLUMN, 3.0)
        points = data["points"]
        for i, cap in enumerate(sorted({p["cap"] for p in points})):
            some = [p for p in points if p["cap"] == cap]
            x, y = ([p[k] for p in some] for k in ("nats_per_token", "extra_per_call"))
            axes.plot(x, y, ls="none", ms=2.5, alpha=0.55, mew=0, label=f"cap {cap}", **look(i))
        best = sorted((p["nats_per_token"], p["extra_per_call"]) for p in points if p["frontier"])
        axes.step(
            [0, *(x for x, _ in best)], [0, *(y for _, y in best)], where="post", color=GREY, lw=0.9, label="frontier"
        )
        for i, mark in enumerate(data["marks"]):
            kept = look(i + 3)
            axes.plot(
                mark["nats_per_token"],
                mark["extra_per_call"],
                ls="none",
                ms=6,
                mec="white",
                mew=0.6,
                label=mark["label"],
                zorder=4,
                **kept,
            )
        axes.set(xlabel="log-likelihood given up, nats per token", ylabel="extra tokens per call")
        axes.set(xlim=(0, None), ylim=(0, None))
        made.legend(loc="outside lower center", ncols=2, handletextpad=0.4, columnspacing=1.0)
    return made


def exhaustion(data: Mapping[str, Any]) -> Figure:
    """The budget running down. `data`: `budget`, recorded `spent` and `unrefused` after n = 0.. blocks, and where there is
    one the i.i.d. model's `model_spent` and certified `model_unrefused` [[low, high]]."""
    with style():
        made, (left, right) = figure(PAGE, 2.3, ncols=2)
        n = range(len(data["spent"]))
        left.plot(n, data["spent"], ms=2.5, label="recorded requests", **look(0))
        right.plot(n, data["unrefused"], ms=2.5, **look(0))
        if "model_spent" in data:
            left.plot(n, data["model_spent"], color=COLORS[1], ls="--", label="i.i.d. model")
            low, high = zip(*data["model_unrefused"])
            right.fill_between(n, low, high, color=COLORS[1], alpha=0.35, lw=0)
            right.plot(n, [(a + b) / 2 for a, b in zip(low, high)], color=COLORS[1], ls="--", lw=0.8)
        if math.isfinite(float(data["budget"])):
            left.axhline(float(data["budget"]), color=GREY, lw=0.8, ls=":")
            left.annotate(
                "budget", (0, float(data["budget"])), xytext=(2, -7), textcoords="offset points", fontsize=6, color=GREY
            )
        left.set(xlabel="blocks", ylabel="mean nats spent", ylim=(0, None), xlim=(0, None))
        right.set(xlabel="blocks", ylabel="share never refused", ylim=(-0.02, 1.02), xlim=(0, None))
        left.legend(loc="lower right")
        for axes in (left, right):
            axes.grid(color=LIGHT, lw=0.5)
    return made
