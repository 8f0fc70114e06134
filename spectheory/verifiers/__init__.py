"""Decision rules, one a file, found by name: `get("nsd", top_p=0.9)`. Negative controls live in `broken`."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from ..errors import UsageError
from .nucleus import Nucleus
from .standard import Standard
from .token import TokenRule

# name -> (module, class, example settings). One line adds a rule: the conformance, exact, Monte Carlo and audit tests
# pick it up with its example settings.
RULES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "standard": ("standard", "Standard", {}),
    "nsd": ("nucleus", "Nucleus", {"top_p": 0.8}),
    "asd": ("regret_budget", "RegretBudget", {"budget": 8.0, "gate": 0.25, "cap": 2, "variant": "suffix"}),
    "lenience": ("lenience", "Lenience", {"lenience": 0.5}),
    "resample-target": ("resample_target", "ResampleTarget", {}),
    "sample-and-match": ("sample_and_match", "SampleAndMatch", {}),
    "block": ("block", "BlockVerification", {}),
    "ensemble": ("ensemble", "Ensemble", {"weight": 0.5}),
    "slack": ("slack", "AdditiveSlack", {"tolerance": 0.3}),
    "mentored": ("mentored", "Mentored", {"alpha": 0.5}),
    "typical": ("typical", "Typical", {"epsilon": 0.09, "delta": 0.3}),
    "fuzzy": ("fuzzy", "Fuzzy", {"threshold": 0.3}),
    "thresholds": ("thresholds", "Thresholds", {"single": 0.9, "acc": 0.5}),
    "cactus": ("cactus", "Cactus", {"budget": 0.1}),
    "constant": ("constant", "Constant", {"rate": 0.7}),
    "ersd": ("exponential_race", "ExponentialRace", {}),
}


def names() -> list[str]:
    """Registered rule names, in the order of the register."""
    return list(RULES)


def rule_class(name: str) -> type[Any]:
    """The class behind a registered name. Raises UsageError with the known names."""
    if name not in RULES:
        raise UsageError(
            f"unknown rule {name!r}: choose one of {', '.join(RULES)}, or name a class as pkg.module:Class"
        )
    module, cls, _ = RULES[name]
    return getattr(import_module(f".{module}", __name__), cls)  # type: ignore[no-any-return]


def get(name: str, **settings: Any) -> Any:
    """The registered rule `name` with its settings. Raises UsageError for an unknown name or wrong settings."""
    cls = rule_class(name)
    try:
        inspect.signature(cls).bind(**settings)
    except TypeError as error:
        raise UsageError(
            f"rule {name}: {error} (settings: {', '.join(inspect.signature(cls).parameters) or 'none'})"
        ) from None
    return cls(**settings)


def example(name: str) -> Any:
    """The registered rule `name` with its example settings."""
    return get(name, **RULES[name][2])


def __getattr__(name: str) -> Any:
    """Rules by class name, imported when first asked for."""
    for module, cls, _ in RULES.values():
        if cls == name:
            return getattr(import_module(f".{module}", __name__), cls)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["RULES", "Nucleus", "Standard", "TokenRule", "example", "get", "names", "rule_class"]
