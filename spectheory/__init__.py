"""spectheory: how far does a speculative-decoding verifier drift from its target, and what does it buy?

The parts are loaded when first used: `import spectheory` itself is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import audit, exact, figures, ledger, logits, models, montecarlo, pmf, testing, theory, verifiers
    from .errors import CostError, DataError, PrecisionError, SpecTheoryError, UsageError
    from .protocols import Block, Coins, Truncated, Verdict
    from .results import AuditReport, CheckResult, Interval

_PARTS = frozenset(
    ("audit", "exact", "figures", "ledger", "logits", "models", "montecarlo", "pmf", "testing", "theory", "verifiers")
)
_NAMES = {
    "Block": "protocols",
    "Coins": "protocols",
    "Truncated": "protocols",
    "Verdict": "protocols",
    "AuditReport": "results",
    "CheckResult": "results",
    "Interval": "results",
    "CostError": "errors",
    "DataError": "errors",
    "PrecisionError": "errors",
    "SpecTheoryError": "errors",
    "UsageError": "errors",
}


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f".{name}", __name__)
    if name in _NAMES:
        return getattr(import_module(f".{_NAMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_PARTS, *_NAMES, "__version__"]


__all__ = [
    "AuditReport",
    "Block",
    "CheckResult",
    "Coins",
    "CostError",
    "DataError",
    "Interval",
    "PrecisionError",
    "SpecTheoryError",
    "Truncated",
    "UsageError",
    "Verdict",
    "__version__",
    "audit",
    "exact",
    "figures",
    "ledger",
    "logits",
    "models",
    "montecarlo",
    "pmf",
    "testing",
    "theory",
    "verifiers",
]
