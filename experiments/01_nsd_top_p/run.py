"""How far does NSD drift as top_p grows, on real rows, and what does the drift buy?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Figures, experiment

import spectheory as st
from spectheory.figures import audit as figures


def run(config: dict[str, Any]) -> tuple[dict[str, Any], Figures]:
    """NSD's mean one-step deviation and acceptance against top_p, on recorded rows."""
    source = st.logits.read(config["logits"]) if config["logits"] else st.logits.sample()
    curve: dict[str, list[float]] = {"values": config["top_p"], "deviation": [], "acceptance": [], "nucleus_size": []}
    blocks = [(block.p[:-1], block.q) for block in source]
    for top_p in config["top_p"]:
        rule = st.verifiers.Nucleus(top_p)
        steps = [
            (st.theory.nsd.step_deviation(p, q, top_p), st.exact.acceptance_rate(rule, p, q), p) for p, q in blocks
        ]
        rows = sum(len(delta) for delta, _, _ in steps)
        curve["deviation"].append(sum(float(delta.sum()) for delta, _, _ in steps) / rows)
        curve["acceptance"].append(sum(float(beta.sum()) for _, beta, _ in steps) / rows)
        curve["nucleus_size"].append(sum(float(st.pmf.nucleus_size(p, top_p).sum()) for _, _, p in steps) / rows)
    data = {"parameter": "top_p", **curve}
    return {"rows": rows, **curve}, {"sweep": (figures.sweep(data), data)}


if __name__ == "__main__":
    experiment(run, __file__)
