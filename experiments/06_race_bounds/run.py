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
from spectheory.figures import ersd as figures
from spectheory.theory import ersd, trees


def law(*weights: Any) -> Any:
    """The law of these weights, in Fractions."""
    exact = [Fraction(w) for w in weights]
    return np.array([w / sum(exact) for w in exact], dtype=object)


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


def gallery() -> dict[str, Any]:
    """The counterexamples of E3, each against what the false claim asks for."""
    half, sure = law(1, 1), (law(9, 1), law(9999, 1))
    rising = st.exact.rank_law(law(57, 38, 5), law(5994, 3996, 10))
    entropy, divergence = float(st.pmf.entropy(st.exact.rank_law(*sure))), float(st.pmf.kl(*sure))
    trap = ersd.reused_noise_law(law(1, 5, 4), law(6, 3, 1))
    classes = [st.exact.rank_law(half, half), st.exact.rank_law(law(0, 1), half)]
    chain = 1 + sum(sum(c[0] ** d for c in classes) / 2 for d in range(1, 17))
    averaged = trees.averaged_bound([float(st.pmf.entropy(c)) for c in classes], 16, 2)
    return {
        "panels": [
            {
                "title": "H[R] >= KL? (nats)",
                "labels": ["H[R]"],
                "values": [entropy],
                "limit": {"label": "KL", "value": divergence},
            },
            {"title": "P(R = r) falls?", "labels": ["1", "2", "3"], "values": rising.astype(float).tolist()},
            {
                "title": "H[R] = 0 means P = Q? R = 2 surely",
                "labels": ["1", "2"],
                "values": st.exact.rank_law(law(0, 1), law(1, 0)).astype(float).tolist(),
            },
            {
                "title": "noise reused: P(token 2)",
                "labels": ["emitted"],
                "values": [float(trap[1])],
                "limit": {"label": "target", "value": 0.5},
            },
            {
                "title": "averaged entropy bounds tokens?",
                "labels": ["k = 16"],
                "values": [float(chain)],
                "limit": {"label": "false bound", "value": averaged},
            },
        ]
    }


def run(config: dict[str, Any]) -> tuple[dict[str, Any], Figures]:
    """Bounds on expected tokens against the best tree, list rules on a pair of Zipf laws, and counterexamples."""
    i = range(1, config["vocab_size"] + 1)
    p, q = law(*(Fraction(1, x) for x in i)), law(*(Fraction(1, x * x) for x in i))
    ranks = st.exact.rank_law(p, q)
    data, panels = curves(law(4, 3, 2, 1), law(1, 1, 1, 1), config["most_drafts"]), gallery()
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
