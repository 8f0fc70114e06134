"""What does ASD's regret budget buy on real greedy blocks, and how fast is it spent?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Figures, drawn, experiment

import spectheory as st


def run(config: dict[str, Any]) -> tuple[dict[str, Any], Figures]:
    """ASD on the recorded greedy blocks, both published variants: ledger, frontier and exhaustion."""
    results: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    for variant in config["variants"]:
        settings = {k: config[k] for k in ("budget", "gate", "cap")}
        report = st.audit.run(st.verifiers.get("asd", variant=variant, **settings))
        for name, (figure, data) in drawn(report).items():
            figures[f"{variant}_{name}"] = (figure, data)
            results[f"{variant}_{name}"] = data
    return results, figures


if __name__ == "__main__":
    experiment(run, __file__)
