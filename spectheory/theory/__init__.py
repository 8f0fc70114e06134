"""Closed forms and bounds, one file a paper, each registered with its statement and source (`registry`)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The files that register claims; `load` imports them all, in this order.
FAMILIES = (
    "standard",
    "nsd",
    "lenience",
    "lossy",
    "sequence",
    "lower",
    "composition",
    "joint",
    "asd",
    "asd_request",
    "ersd",
    "race_entropy",
    "multidraft",
    "trees",
    "sequence_order",
    "race_law",
    "peers",
)


def load() -> None:
    """Import every theory file, so that the register is complete."""
    for name in FAMILIES:
        import_module(f".{name}", __name__)


def __getattr__(name: str) -> Any:
    if name in (*FAMILIES, "bounds", "chain", "efficiency", "registry"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
