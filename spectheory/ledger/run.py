"""Search each claim for a violation, then try it on published examples, synthetic families and recorded rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis.errors import HypothesisException

from ..errors import UsageError
from ..results import CheckResult
from ..testing import counterexample
from ..theory.registry import Theorem, theorems
from . import rows
from .checks import CHECKS, Check, load
from .show import describe

FLOAT_TOLERANCE = 1e-9  # what rounding may cost on published decimals and on float64 rows, where Fractions allow 0


def run(family: str = "", examples: int = 100, seed: int = 0, mutate: bool = False) -> Iterator[CheckResult]:
    """Check every claim, or those of one family (S, N, Q, A, E) or one id with its parts, yielding results as they come.

    With `mutate`, each claim's wrong formula is swapped in: then `ok` says that the check still passed, which is a
    defect of the check. Raises UsageError for an unknown family.
    """
    for claim in chosen(family):
        yield run_one(claim, CHECKS[claim.id], examples, seed, mutate)


def chosen(family: str = "") -> list[Theorem]:
    """The claims that `run` checks, in the order of registration. Raises UsageError if there are none."""
    load()
    claims = [t for t in theorems().values() if t.id in CHECKS and _belongs(t, family)]
    if not claims:
        known = sorted({t.family for t in theorems().values()})
        raise UsageError(
            f"no claim is called {family!r}: choose a family ({', '.join(known)}) or an id, see `spectheory list`"
        )
    return claims


def _belongs(claim: Theorem, family: str) -> bool:
    return family in ("", claim.family, claim.id) or claim.id.startswith(f"{family}.")


@dataclass(frozen=True)
class Outcome:
    """One instance under one formula: by how much the relation fails, or the exception that came instead."""

    gap: float
    tolerance: float
    error: str = ""

    @property
    def holds(self) -> bool:
        return not self.error and self.gap <= self.tolerance


def run_one(claim: Theorem, check: Check, examples: int, seed: int, mutate: bool = False) -> CheckResult:
    """Check one claim with up to `examples` searched instances and all its fixed ones.

    A claim known to be false passes if the search or the registered counterexample violates it, no registered one fails
    to, and the replacement holds on the rows. An exception in a formula fails the claim and is reported with its
    instance. With `mutate` only the search runs, and only a violation counts as caught, not an exception.
    """
    result = _searched(claim, check, examples, seed, mutate)
    if mutate or result.error or (not result.ok and claim.status != "false"):
        return result
    result = _fixed(claim, check, result)
    refuted = bool(result.witness) or result.golden > 0  # with golden examples that all violate it, as `_fixed` saw to
    return replace(result, ok=result.ok and refuted) if claim.status == "false" else result


def _searched(claim: Theorem, check: Check, examples: int, seed: int, mutate: bool) -> CheckResult:
    false = claim.status == "false"
    formula = check.mutated if mutate else check.claimed
    worst, tried = -math.inf, 0

    def holds(instance: Any) -> bool:
        nonlocal worst, tried
        tried += 1
        outcome = compare(claim, check, formula, instance, searched=True)
        worst = max(worst, outcome.gap)
        return outcome.holds or (bool(outcome.error) and mutate and not false)

    error, found, text = "", False, ""
    try:
        witness = counterexample(check.instances, holds, examples=examples, seed=seed)
        found = witness is not None
        if found:
            text, error = describe(witness), compare(claim, check, formula, witness, searched=True).error
    except Exception as problem:  # the strategy itself failed: a defect of the check, reported like any other
        error = _name(problem)
    if not tried:
        error = error or "the search tried no instance"
    ok = (found if false else not found) and not error
    return CheckResult(claim.id, ok, tried, float(worst), text, seed, status=claim.status, error=error)


def _fixed(claim: Theorem, check: Check, result: CheckResult) -> CheckResult:
    """`result` after the golden instances, the families and the recorded rows, as far as they go well."""
    false = claim.status == "false"
    counts: dict[str, Any] = {"golden": 0, "families": 0, "recorded": 0}
    worst = -math.inf
    try:
        for kind, label, instance, value in _instances(check):
            counts[kind] += 1
            formula = check.mutated if false and kind != "golden" else check.claimed
            outcome = compare(claim, check, formula, instance, searched=False)
            worst = max(worst, outcome.gap)
            wrong = outcome.error or _misses(check, instance, value)
            if wrong or outcome.holds == (false and kind == "golden"):
                text = f"{label}: {describe(instance)}"
                return replace(result, ok=False, witness=text, error=wrong, worst=float(outcome.gap), **counts)
    except Exception as problem:  # making an instance failed
        return replace(result, ok=False, witness="", error=_name(problem), **counts)
    return replace(result, ok=True, worst_fixed=float(worst), **counts)


def _instances(check: Check) -> Iterator[tuple[str, str, Any, Any]]:
    """(kind, label, instance, golden value or None) of every fixed instance."""
    for n, (instance, value) in enumerate(check.golden):
        yield "golden", f"golden example {n}", instance, value
    if check.pairs:
        for kind, source in (("families", rows.family_pairs()), ("recorded", rows.recorded_pairs())):
            for n, (label, p, q) in enumerate(source):
                yield kind, label, check.pairs(p, q, n), None
    if check.blocks:
        for n, block in enumerate(rows.recorded_blocks()):
            yield "recorded", f"recorded block {n}", check.blocks(block), None


def compare(claim: Theorem, check: Check, formula: Callable[[Any], Any], instance: Any, searched: bool) -> Outcome:
    """The relation on one instance. Rounding is forgiven on fixed instances, where rows are float64.

    On searched ones a claim of status `exact` must be compared in exact arithmetic at tolerance 0.
    """
    try:
        claimed, second = formula(instance), check.second(instance)
        gap, exact = excess(claim.relation, claimed, second), _exact(claimed) and _exact(second)
    except HypothesisException:  # the search's own signals
        raise
    except Exception as problem:
        return Outcome(math.inf, check.tolerance, _name(problem))
    if searched and claim.status == "exact" and (check.tolerance or not exact):
        return Outcome(gap, 0, "status `exact`, but the check has a tolerance or compares rounded numbers")
    return Outcome(gap, check.tolerance if searched or exact else max(check.tolerance, FLOAT_TOLERANCE))


def excess(relation: str, claimed: Any, second: Any) -> float:
    """By how much `second RELATION claimed` fails, the worst entry; <= 0 where it holds. NaN counts as failing."""
    a, b = np.asarray(second, dtype=object), np.asarray(claimed, dtype=object)
    worst = -np.inf
    for x, y in zip(*(v.ravel() for v in np.broadcast_arrays(a, b))):
        gap = 0 if x == y else x - y  # equal infinities leave no gap
        gap = {"=": abs(gap), "<=": gap, ">=": -gap}[relation]
        worst = max(worst, np.inf if gap != gap else float(gap))
    return float(worst)


def _misses(check: Check, instance: Any, value: Any) -> str:
    """What is wrong if the closed form does not give the published `value`; "" if it does or none is published."""
    if value is None:
        return ""
    got = check.claimed(instance)
    decimals = [v for v in np.asarray(value, dtype=object).ravel() if isinstance(v, Decimal)]
    if decimals:  # right to the last digit that is printed
        limit = max(float(Decimal(5).scaleb(int(v.as_tuple().exponent) - 1)) for v in decimals)
        near = excess("=", np.vectorize(float)(value), got) <= limit * (1 + 1e-6)
    else:
        exact = _exact(got) and _exact(value)
        near = excess("=", value, got) <= (0 if exact else max(check.tolerance, FLOAT_TOLERANCE))
    return "" if near else f"gives {got}, published {value}"


def _exact(x: Any) -> bool:
    """True if every entry is rational, or infinite."""
    if isinstance(x, tuple | list):
        return all(_exact(v) for v in x)
    if isinstance(x, np.ndarray):
        return x.dtype != np.float64 and all(_exact(v) for v in x.ravel())
    return isinstance(x, Fraction | int | np.integer | np.bool_) or math.isinf(x)


def _name(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
