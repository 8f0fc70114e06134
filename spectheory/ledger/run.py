"""Search each claim for a violation with Hypothesis; a violation comes back shrunk, with the seed that shows it again."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from ..errors import UsageError
from ..results import CheckResult
from ..theory.registry import Theorem, theorems
from .checks import CHECKS, Check, load


def run(family: str = "", examples: int = 100, seed: int = 0, mutate: bool = False) -> Iterator[CheckResult]:
    """Check every claim, or those of one family (S, N, Q, A, E) or one id, yielding results as they come.

    With `mutate`, each claim's wrong formula is swapped in: then `ok` says that the check still passed, which is a
    defect of the check. Raises UsageError for an unknown family.
    """
    load()
    chosen = [t for t in theorems().values() if family in ("", t.family, t.id) and t.id in CHECKS]
    if not chosen:
        known = sorted({t.family for t in theorems().values()})
        raise UsageError(
            f"no claim is called {family!r}: choose a family ({', '.join(known)}) or an id, see `spectheory list`"
        )
    for claim in chosen:
        yield run_one(claim, CHECKS[claim.id], examples, seed, mutate)


def run_one(claim: Theorem, check: Check, examples: int, seed: int, mutate: bool = False) -> CheckResult:
    """Search one claim with up to `examples` instances. A claim known to be false passes if its violation is found."""
    formula = check.mutated if mutate else check.claimed
    worst, tried = [-np.inf], [0]

    def violated(instance: Any) -> bool:
        tried[0] += 1
        gap = excess(claim.relation, formula(instance), check.second(instance))
        worst[0] = max(worst[0], gap)
        return gap > check.tolerance

    witness = search(check.instances, violated, examples, seed)
    found = witness is not None
    ok = found if claim.status == "false" else not found
    text = "" if witness is None else repr(witness[0])
    return CheckResult(claim.id, ok, tried[0], float(worst[0]), text, seed)


def search(instances: Any, violated: Callable[[Any], bool], examples: int, seed: int) -> tuple[Any] | None:
    """The smallest instance that is `violated`, in a 1-tuple, or None: reproducible from `seed`."""
    config = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (find(instances, violated, settings=config, random=random.Random(seed)),)
    except NoSuchExample:
        return None


def excess(relation: str, claimed: Any, second: Any) -> float:
    """By how much `second RELATION claimed` fails, the worst entry; <= 0 where it holds. NaN counts as failing."""
    a, b = np.asarray(second, dtype=object), np.asarray(claimed, dtype=object)
    worst = -np.inf
    for x, y in zip(*(v.ravel() for v in np.broadcast_arrays(a, b))):
        gap = 0 if x == y else x - y  # equal infinities leave no gap
        gap = {"=": abs(gap), "<=": gap, ">=": -gap}[relation]
        worst = max(worst, np.inf if gap != gap else float(gap))
    return float(worst)
