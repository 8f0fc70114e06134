"""Symbolic proofs: claims shown for ALL laws of a small size, case by case, in exact rational functions (sympy).

A case is a sign pattern: which of two quantities is the larger, token by token. Within a case the laws are written in
parameters >= 0 that make the pattern hold by construction, and positive parts and minima become plain polynomials. Then
an equation is an identity of rational functions, and an inequality is certified by coefficients that are all >= 0.
A step that does not go through raises `Refused` with a point where the claim fails, if one is found.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any

from ..errors import SpecTheoryError, UsageError

# Claim -> the file that proves it, as `<claim with _ for .>()`.
PROOFS = {
    "N1": "symbolic_nsd",
    "N2": "symbolic_nsd",
    "N3": "symbolic_nsd",
    "Q1": "symbolic_sequence",
    "Q1.standard": "symbolic_sequence",
    "A7": "symbolic_regret",
    "A7.bound": "symbolic_regret",
    "A7.perplexity": "symbolic_regret",
    "E1.law": "symbolic_race",
    "E1.accept": "symbolic_race",
    "E1.second": "symbolic_race",
    "E1.mean": "symbolic_race",
    "E1.two": "symbolic_race",
    "E1.lower": "symbolic_race",
    "E1.upper": "symbolic_race",
}


class Refused(SpecTheoryError):
    """A proof step that does not go through: the case, and a counterexample where one is found."""


def prove(claim: str = "") -> Iterator[str]:
    """The proof log of one claim, of its parts (E1), of a family (N) or of all, line by line.

    Raises UsageError for a claim without a symbolic proof or where sympy is missing, Refused if a step fails.
    """
    _require_sympy()
    names = [c for c in PROOFS if claim in ("", c, c.split(".")[0], c.split(".")[0].rstrip("0123456789"))]
    if not names:
        raise UsageError(f"no symbolic proof of {claim!r}: there are {', '.join(PROOFS)}")
    for name in names:
        proof = getattr(import_module(f".{PROOFS[name]}", __package__), name.replace(".", "_"))
        yield from proof()


def rational_functions(names: Sequence[str]) -> tuple[Any, ...]:
    """Generators of the field Q(names): exact arithmetic in canonical form, so that 0 is recognised as 0."""
    from sympy import QQ
    from sympy.polys.fields import field

    return tuple(field(list(names), QQ)[1:])


def numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{i + 1}" for i in range(count)]


def vanishes(difference: Any, case: str, **laws: Any) -> None:
    """Check that a rational function is 0. Raises Refused with a point, as `laws` there, where it is not."""
    if difference != 0:
        raise Refused(f"{case}: the two sides differ by {difference}{_witness(difference, lambda x: x != 0, laws)}")


def sign(value: Any, case: str) -> int:
    """The sign of a rational function over all parameters >= 0, read off its coefficients. Raises Refused if mixed."""
    if value == 0:
        return 0
    top, bottom = _one_sign(value.numer), _one_sign(value.denom)
    if not (top and bottom):
        raise Refused(f"{case}: {value} has no sign that its coefficients show")
    return top * bottom


def at_least_zero(value: Any, case: str, **laws: Any) -> None:
    """Check that a rational function is >= 0 for all parameters >= 0, by its coefficients. Raises Refused."""
    if value != 0 and not _one_sign(value.numer) * _one_sign(value.denom) > 0:
        raise Refused(f"{case}: cannot certify {value} >= 0{_witness(value, lambda x: x < 0, laws)}")


def at(value: Any, numbers: Sequence[int]) -> Fraction:
    """A rational function where its generators have these values. Raises ZeroDivisionError at a pole."""
    top, bottom = (value.numer(*numbers), value.denom(*numbers))
    return Fraction(int(top.numerator), int(top.denominator)) / Fraction(int(bottom.numerator), int(bottom.denominator))


def _one_sign(polynomial: Any) -> int:
    """+1 or -1 if all coefficients are of that sign, else 0."""
    coefficients = polynomial.coeffs()
    if all(c > 0 for c in coefficients):
        return 1
    return -1 if all(c < 0 for c in coefficients) else 0


def _witness(value: Any, fails: Callable[[Fraction], bool], laws: dict[str, Any]) -> str:
    """A small point where `fails(value)`, shown as the normalised `laws` there; "" if none is met."""
    gens = value.field.gens
    small = itertools.islice(itertools.product((1, 2), repeat=len(gens)), 64)
    rng = random.Random(0)
    wide = ([rng.choice((0, 1, 2, 3, 10, 100)) for _ in gens] for _ in range(2000))
    for numbers in itertools.chain(small, wide):
        with contextlib.suppress(ZeroDivisionError):
            if fails(at(value, numbers)):
                return "".join(f"; {name} = {_law_at(law, numbers)}" for name, law in laws.items())
    return ""


def _law_at(law: Sequence[Any], numbers: Sequence[int]) -> str:
    masses = [at(x, numbers) for x in law]
    return "(" + ", ".join(str(m / sum(masses)) for m in masses) + ")"


def _require_sympy() -> None:
    try:
        import_module("sympy")
    except ImportError as error:
        raise UsageError("symbolic proofs need sympy: pip install 'spectheory[symbolic]'") from error
