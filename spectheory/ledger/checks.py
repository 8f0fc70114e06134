"""How a claim is checked: an instance strategy, the claimed value, an independent second route, and a wrong formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from hypothesis.strategies import SearchStrategy

# The files that declare checks; one a theory file.
FAMILIES = (
    "standard",
    "nsd",
    "lenience",
    "lossy",
    "sequence",
    "asd",
    "asd_request",
    "ersd",
    "multidraft",
    "trees",
    "sequence_order",
    "race_law",
    "peers",
)


# The files that add published examples and recorded rows to the checks of a paper.
FIXED = ("fixed_lossy", "fixed_sequence", "fixed_asd", "fixed_ersd")


@dataclass(frozen=True)
class Check:
    """`claimed(i)` calls the registered closed form on instance `i`, `second(i)` computes the same by another route.

    They are compared by the theorem's relation, within `tolerance` (0 where both are rational). `mutated` is a wrong
    closed form: with it the search must find a violation. For a claim known to be false, `claimed` is the false claim,
    the search must find a violation, and `mutated` is the true replacement, with which it must not.

    Beside the search, a check may name fixed instances: `golden` pairs (instance, value of `claimed`) from published
    examples (a `Decimal` value is right to its last digit; None: no value is published; for a false claim the instance
    is the registered counterexample); `pairs(p, q, n)` makes an instance of the n-th pair of float64 laws (V,), one a
    synthetic family, then recorded full-vocabulary rows; `blocks(block)` makes one of a recorded block. `rows.coarse`
    turns large laws into small ones in Fractions.
    """

    theorem: str
    instances: SearchStrategy[Any]
    claimed: Callable[[Any], Any]
    second: Callable[[Any], Any]
    mutated: Callable[[Any], Any]
    tolerance: float = 1e-9
    golden: Sequence[tuple[Any, Any]] = ()
    pairs: Callable[[Any, Any, int], Any] | None = None
    blocks: Callable[[Any], Any] | None = None


CHECKS: dict[str, Check] = {}


def check(
    theorem: str,
    *,
    instances: SearchStrategy[Any],
    claimed: Callable[[Any], Any],
    second: Callable[[Any], Any],
    mutated: Callable[[Any], Any],
    tolerance: float = 1e-9,
    golden: Sequence[tuple[Any, Any]] = (),
    pairs: Callable[[Any, Any, int], Any] | None = None,
    blocks: Callable[[Any], Any] | None = None,
) -> None:
    """Declare how claim `theorem` is checked. Raises ValueError if it already is."""
    if theorem in CHECKS:
        raise ValueError(f"theorem {theorem} has two checks")
    CHECKS[theorem] = Check(theorem, instances, claimed, second, mutated, tolerance, golden, pairs, blocks)


def attach(
    theorem: str,
    *,
    golden: Sequence[tuple[Any, Any]] = (),
    pairs: Callable[[Any, Any, int], Any] | None = None,
    blocks: Callable[[Any], Any] | None = None,
) -> None:
    """Add fixed instances to the check of `theorem`. Raises ValueError if it has some, KeyError if it has no check."""
    before = CHECKS[theorem]
    if before.golden or before.pairs or before.blocks:
        raise ValueError(f"theorem {theorem} has fixed instances already")
    CHECKS[theorem] = replace(before, golden=golden, pairs=pairs, blocks=blocks)


def load() -> None:
    """Import every theory file and every file of checks."""
    from .. import theory

    theory.load()
    for name in (*FAMILIES, *FIXED):
        import_module(f".{name}", __package__)
