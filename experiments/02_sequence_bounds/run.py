"""How loose is each sequence bound? Exact deviation against every bound, on models small enough to enumerate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Figures, experiment

import spectheory as st
from spectheory.figures import sequence as figures

MODELS = {
    "independent": ([[0.4, 0.2, 0.3, 0.1]], [[0.1, 0.5, 0.1, 0.3]]),
    "markov": (
        [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]],
        [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]],
    ),
}


UPPER = ("coupling", "union", "uniform", "pinsker", "bretagnolle_huber", "hellinger", "composition", "joint")


def curve(name: str, lengths: list[int], exact: bool, config: dict[str, Any]) -> dict[str, Any]:
    """Every upper bound and the best lower one at each horizon, with the exact deviation where it can be enumerated."""
    target, draft = MODELS[name]
    model = st.models.Tabular(target=np.array(target), draft=np.array(draft), initial=0)
    rule, size = st.verifiers.Nucleus(config["top_p"]), config["block_size"]
    bounds = [st.theory.nsd.sequence_bounds(rule, model, length=t, block_size=size) for t in lengths]
    data: dict[str, Any] = {
        "lengths": lengths,
        "upper": {key.replace("_", "-"): [b[key].upper for b in bounds] for key in UPPER if key in bounds[0]},
        "lower": {"largest lower bound": [b["best"].lower for b in bounds]},
    }
    if exact:
        data["exact"] = [st.exact.sequence_deviation(rule, model, length=t, block_size=size) for t in lengths]
    return data


def run(config: dict[str, Any]) -> tuple[dict[str, Any], Figures]:
    """NSD over T tokens: the exact deviation and every bound, for independent and for Markov contexts."""
    results = {}
    for name in MODELS:
        results[f"{name}_short"] = curve(name, config["short"], True, config)
        results[f"{name}_long"] = curve(name, config["long"], False, config)
    return results, {name: (figures.horizon(data), data) for name, data in results.items()}


if __name__ == "__main__":
    experiment(run, __file__)
