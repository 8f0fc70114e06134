"""Readings of the race theory that fail (theorem E3), computed as the panels of one figure."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from .. import exact, pmf
from ..theory import ersd, trees


def law(*weights: Any) -> Any:
    """The law of these weights, in Fractions."""
    rational = [Fraction(w) for w in weights]
    return np.array([w / sum(rational) for w in rational], dtype=object)


def misreadings() -> dict[str, Any]:
    """The counterexamples of E3, each against what the false claim asks for."""
    half, sure = law(1, 1), (law(9, 1), law(9999, 1))
    rising = exact.rank_law(law(57, 38, 5), law(5994, 3996, 10))
    entropy, divergence = float(pmf.entropy(exact.rank_law(*sure))), float(pmf.kl(*sure))
    trap = ersd.reused_noise_law(law(1, 5, 4), law(6, 3, 1))
    classes = [exact.rank_law(half, half), exact.rank_law(law(0, 1), half)]
    chain = 1 + sum(sum(c[0] ** d for c in classes) / 2 for d in range(1, 17))
    averaged = trees.averaged_bound([float(pmf.entropy(c)) for c in classes], 16, 2)
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
                "values": exact.rank_law(law(0, 1), law(1, 0)).astype(float).tolist(),
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
