"""Standard, NSD, lenience, ASD and ERSD on the same real blocks: what does each accept, and at what deviation?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Figures, experiment

import spectheory as st
from spectheory.figures import audit as figures


def mean(values: list[Any]) -> float:
    return float(np.concatenate([np.atleast_1d(v) for v in values]).mean())


def token_rule(rule: Any, blocks: list[Any]) -> dict[str, float]:
    """Mean acceptance and one-step deviation of a token rule over the drafted rows."""
    steps = [st.exact.step(rule, block.p[:-1], block.q) for block in blocks]
    return {"acceptance": mean([s.acceptance_rate for s in steps]), "deviation": mean([s.deviation for s in steps])}


def greedy_rule(rule: Any, blocks: list[Any]) -> dict[str, float]:
    """A greedy rule on greedy drafts of the same rows. Each row is a block of one, so that no budget carries over.

    What it commits is one token: its TV to the target law is 1 - p(committed). A greedy rule gives up the target's
    randomness first, so even strict greedy lies far from the sampling target: that is what the plane shows.
    """
    accepted, deviation = [], []
    for block in blocks:
        for i in range(block.size):
            drafted = int(np.argmax(block.q[i]))
            logits = np.log(np.maximum(block.p[i : i + 2], 1e-300))
            one = st.Block(np.array([drafted]), logits=logits)
            verdict = rule.verify(one, rule.start(), None)
            accepted.append(verdict.accepted)
            deviation.append(1 - block.p[i][int(verdict.tokens[0])])
    return {"acceptance": float(np.mean(accepted)), "deviation": float(np.mean(deviation))}


def run(config: dict[str, Any]) -> tuple[dict[str, Any], Figures]:
    """Each rule's mean acceptance and deviation on the recorded rows, with the optimal line of theorem N2."""
    source = st.logits.read(config["logits"]) if config["logits"] else st.logits.sample()
    blocks = [block for _, block in zip(range(config["blocks"]), source)]
    points = {}
    for name in config["rules"]:
        points[name] = token_rule(st.verifiers.example(name), blocks)
    for top_p in config["top_p"]:
        points[f"nsd, top_p = {top_p:g}"] = token_rule(st.verifiers.Nucleus(top_p), blocks)
    for budget in config["budgets"]:
        rule = st.verifiers.get("asd", budget=budget, gate=config["gate"], cap=1, variant="suffix")
        points[f"asd, budget {budget:g}, greedy"] = greedy_rule(rule, blocks)
    tv = mean([st.pmf.total_variation(block.p[:-1], block.q) for block in blocks])
    data = {"tv": tv, "points": [{"label": k, **v} for k, v in points.items()], "curves": []}
    return {"tv": tv, **points}, {"plane": (figures.plane(data), data)}


if __name__ == "__main__":
    experiment(run, __file__)
