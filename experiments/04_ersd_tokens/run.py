"""How many tokens does the best ERSD draft tree yield on real rows, and how far above are the bounds?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Figures, drawn, experiment

import spectheory as st


def run(config: dict[str, Any]) -> tuple[dict[str, Any], Figures]:
    """ERSD on recorded rows: expected tokens against k with all bounds, the rank law, the best tree, its peers."""
    source = st.logits.read(config["logits"]) if config["logits"] else st.logits.sample()
    blocks = [block for _, block in zip(range(config["blocks"]), source)]
    report = st.audit.run(st.verifiers.get("ersd", k=config["k"]), blocks)
    figures = drawn(report)
    # The drawn tree is one of several best ones: paths (1, 2) and (2, 1) tie, and rounding decides which comes first.
    return {name: data for name, (_, data) in figures.items() if name != "tree"}, figures


if __name__ == "__main__":
    experiment(run, __file__)
