"""The look of every figure: reads well in a two-column paper, safe for colour-blind readers, the same bytes each time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

COLUMN, PAGE = 3.4, 7.0  # inches: one column, two columns
# Okabe and Ito's palette without its yellow, which is too light for lines on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "h", "p")
GREY, LIGHT = "#555555", "#E8E8E8"

RC = {
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "savefig.bbox": None,
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same glyphs on every machine
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": LIGHT,
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "spectheory",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "pdf.compression": 6,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw and save inside this block."""
    with rc_context(RC):
        yield


def figure(width: float = COLUMN, height: float = 2.5, **subplots: Any) -> tuple[Figure, Any]:
    """A Figure and its axes, without pyplot's global state."""
    made = Figure(figsize=(width, height), layout="constrained")
    return made, made.subplots(**subplots)


def look(i: int) -> dict[str, Any]:
    """Colour and marker of the i-th series: neither alone carries the meaning."""
    return {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]}


def save(made: Figure, stem: Path, data: Mapping[str, Any]) -> list[Path]:
    """Write `stem`.svg, .pdf and .json (the data that was drawn), each under a temporary name first.

    Vector files carry no date and hash with a fixed salt: the same data gives the same bytes.
    """
    paths = []
    with style():
        for suffix, metadata in ((".svg", {"Date": None, "Creator": None}), (".pdf", {"CreationDate": None})):
            temporary = stem.with_name(f".{stem.name}.{os.getpid()}.tmp")
            made.savefig(temporary, format=suffix[1:], metadata=metadata)
            paths.append(temporary.replace(stem.with_suffix(suffix)))
    temporary = stem.with_name(f".{stem.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(data, indent=1, allow_nan=False), encoding="utf-8")
    return [*paths, temporary.replace(stem.with_suffix(".json"))]
