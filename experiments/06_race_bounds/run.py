"""How close do the bounds on expected tokens come to the best draft tree, for every budget, and which readings fail?"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Figures, experiment

import spectheory as st
from spectheory.audit.misreadings import law, misreadings
from spectheory.figures import ersd as figures
from spectheory.theory import ersd


def curves(p: Any, q: Any, most: int) -> dict[str, Any]:
    """The best tree and its bounds at budgets 1, 2, 4, ... up to `most`."""
    ranks = st.exact.rank_law(p, q).astype(float)
    grown = 1 + np.cumsum(ersd.optimal_tree(ranks, most).prob)
    budgets = [*(2**i for i in range(int(math.log2(most)) + 1)), most]
    bounds = [ersd.speedup_bounds(ranks, k, len(p)) for k in budgets]
    tv = st.pmf.total_variation(p, q)
    return {
        "budgets": budgets,
        "averaged": [float(grown[k - 1]) for k in budgets],
        "entropy": float(st.pmf.entropy(ranks)),
        **{name: [b[name].upper for b in bounds] for name in ("paper", "leaf", "vfree")},
        "lower": [b["lower"].lower for b in bounds],
        "chain": [float(ersd.chain_tokens(ranks[0], k)) for k in budgets],
        "standard": [float(ersd.chain_tokens(float(1 - tv), k)) for k in budgets],
    }


def run(config: dict[str, Any]) -> tuple[dict[str, Any], Figures]:
    """Bounds on expected tokens against the best tree, list rules on a pair of Zipf laws, and counterexamples."""
    i = range(1, config["vocab_size"] + 1)
    p, q = law(*(Fraction(1, x) for x in i)), law(*(Fraction(1, x * x) for x in i))
    ranks = st.exact.rank_law(p, q)
    data, panels = curves(law(4, 3, 2, 1), law(1, 1, 1, 1), config["most_drafts"]), misreadings()
    tree = ersd.optimal_tree(ranks.astype(float), config["tree"])
    drawn = {"parent": tree.parent.tolist(), "rank": tree.rank.tolist(), "prob": tree.prob.tolist()}
    floats = p.astype(float), q.astype(float)
    by_list = [{"ERSD": float(sum(ranks[:m])), **ersd.peers(*floats, m)} for m in config["lists"]]
    peers = {"lists": config["lists"], "peers": {name: [x[name] for x in by_list] for name in by_list[0]}}
    results = {"tokens": data, "ranks": ranks.astype(float).tolist(), "peers": peers, "gallery": panels}
    return results, {
        "tokens": (figures.tokens(data), data),
        "ranks": (figures.ranks(d := {"law": ranks.astype(float).tolist(), "tail": 0.0}), d),
        "tree": (figures.tree(drawn), drawn),
        "peers": (figures.peers(peers), peers),
        "gallery": (figures.gallery(panels), panels),
    }


if __name__ == "__main__":
    experiment(run, __file__)
