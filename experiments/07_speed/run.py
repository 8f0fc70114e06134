"""Which acceptance, deviation, block size and draft cost can produce a published speed-up, and where does drafting break even?"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Figures, experiment

from spectheory.figures import sequence as figures
from spectheory.theory import efficiency


def number(x: float) -> float | None:
    """JSON knows no NaN: None where no rule can reach the speed-up."""
    return None if math.isnan(x) else float(x)


def run(config: dict[str, Any]) -> tuple[dict[str, Any], Figures]:
    """Least acceptance against cost ratio for each speed-up, and the settings that explain NSD's published pair."""
    costs = np.linspace(0, config["largest_cost_ratio"], config["points"]).tolist()
    data: dict[str, Any] = {"cost_ratio": costs, "panels": []}
    for speedup in config["speedups"]:
        curves = [
            {"block_size": k, "acceptance": [number(efficiency.least_acceptance(speedup, k, c)) for c in costs]}
            for k in config["block_sizes"]
        ]
        data["panels"].append({"speedup": speedup, "curves": curves})
    explained = efficiency.explain_speedups(*config["published"], config["block_sizes"])
    table = [{name: number(value) for name, value in row.items()} for row in explained]
    return {"published": config["published"], "explained_by": table, **data}, {
        "break_even": (figures.break_even(data), data)
    }


if __name__ == "__main__":
    experiment(run, __file__)
