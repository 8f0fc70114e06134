"""E1 for all laws P, Q > 0 of two and three tokens, from the exponential densities, and the bounds on P(R = 1).

First principles: given E_i = x, token i wins the target's race and W is what the draft puts ahead of it iff
x P_j / P_i < E_j < x Q_j / Q_i for j in W and E_j > x max(P_j / P_i, Q_j / Q_i) for the others. So every probability is an
integral of a product of differences of exponentials, done term by term. Zeros of P, Q are limits of these cases.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .symbolic import at_least_zero, numbered, rational_functions, sign, vanishes

SIZES = (2, 3)


@dataclass(frozen=True)
class Case:
    """Laws `p`, `q` (V,), rational functions of parameters > 0 that fix the order of all ratios p / q."""

    name: str
    p: list[Any]
    q: list[Any]

    @property
    def size(self) -> int:
        return len(self.p)

    @property
    def one(self) -> Any:
        return self.p[0].field.one

    @property
    def zero(self) -> Any:
        return self.p[0].field.zero

    def ahead(self, i: int, j: int) -> Any:
        """a_ij = (Q_j P_i / Q_i - P_j)_+, the rate at which j gets ahead of winner i."""
        value = self.q[j] * self.p[i] / self.q[i] - self.p[j]
        return value if i != j and sign(value, self.name) > 0 else self.zero

    def rates(self, i: int) -> list[Any]:
        return [a for a in (self.ahead(i, j) for j in range(self.size)) if a != 0]


def by_ratio(size: int) -> Iterator[Case]:
    """Every order of the ratios r = p / q, ties included: q = b, r = sums of steps c >= 0 along the order."""
    gens = rational_functions([*numbered("b", size), *numbered("c", size)])
    b, c = gens[:size], gens[size:]
    for order in itertools.permutations(range(size)):
        r = dict(zip(order, itertools.accumulate(c)))
        weights = [b[i] * r[i] for i in range(size)]
        p, q = [w / sum(weights) for w in weights], [x / sum(b) for x in b]
        yield Case(f"V = {size}, P/Q ascending along tokens {', '.join(map(str, order))}", p, q)


def by_threshold(size: int) -> Iterator[Case]:
    """Every side of 1 that the ratios P / Q can be on, up to the names of the tokens, for two or three tokens.

    One law exceeds the other on all tokens but one: masses m (1 + x) against m there, x = u1 <= u1 + u2, and e against
    e + sum m x on the last. With three tokens either law may be the one that exceeds. For two they are one case.
    """
    if size not in (2, 3):
        raise UsageError(f"two or three tokens, not {size}: from four on, two may be on either side of 1")
    gens = rational_functions([*numbered("m", size - 1), *numbered("u", size - 1), "e"])
    mass, excess, e = gens[: size - 1], list(itertools.accumulate(gens[size - 1 : -1])), gens[-1]
    larger = [m * (1 + x) for m, x in zip(mass, excess)] + [e]
    smaller = [*mass, e + sum(m * x for m, x in zip(mass, excess))]
    larger, smaller = ([x / sum(larger) for x in law] for law in (larger, smaller))  # both have this mass
    yield Case(f"V = {size}, P >= Q on all tokens but one", larger, smaller)
    if size == 3:
        yield Case(f"V = {size}, P >= Q on one token", smaller, larger)


def event(case: Case, i: int, ahead: frozenset[int]) -> Any:
    """P(Y = i and exactly `ahead` is drafted before it), integrated from the densities; R = 1 + len(ahead)."""
    terms = [(case.one, case.one)]  # (rate, coefficient): the density exp(-x) of E_i
    for j in range(case.size):
        if j == i:
            continue
        target, draft = case.p[j] / case.p[i], case.q[j] / case.q[i]
        draft_leads = sign(draft - target, case.name) > 0
        if j not in ahead:
            terms = [(rate + (draft if draft_leads else target), c) for rate, c in terms]
        elif draft_leads:
            terms = [t for rate, c in terms for t in ((rate + target, c), (rate + draft, -c))]
        else:
            return case.zero
    return _integral(terms, case)


def joint(case: Case, i: int, rank: int) -> Any:
    """P(Y = i, R = rank) from the densities."""
    others = [j for j in range(case.size) if j != i]
    return sum((event(case, i, frozenset(s)) for s in itertools.combinations(others, rank - 1)), case.zero)


def winning_time(case: Case, i: int, rank: int) -> Any:
    """E1: P_i times the integral of e^{-t} PB_{i,t}(rank - 1), a Poisson-binomial of the probabilities 1 - e^{-t a_ij}."""
    rates, terms = case.rates(i), []
    for chosen in itertools.combinations(range(len(rates)), rank - 1):
        product = [(case.one, case.one)]
        for k, a in enumerate(rates):
            if k in chosen:
                product = [t for rate, c in product for t in ((rate, c), (rate + a, -c))]
            else:
                product = [(rate + a, c) for rate, c in product]
        terms += product
    return case.p[i] * _integral(terms, case)


def inclusion_exclusion(case: Case, i: int, rank: int) -> Any:
    """The rational form of E1: P_i sum over sets W of (-1)^{|W| - (n - r)} C(|W|, n - r) / (1 + a_i(W)), r = rank - 1."""
    rates, total = case.rates(i), case.zero
    behind = len(rates) - (rank - 1)
    for size in range(max(behind, 0), len(rates) + 1) if behind >= 0 else ():
        weight = (-1) ** (size - behind) * math.comb(size, behind)
        total += weight * sum((1 / sum(w, case.one) for w in itertools.combinations(rates, size)), case.zero)
    return case.p[i] * total


def first_rank(case: Case, i: int) -> Any:
    """Winner i's term of P(R = 1): P_i / (1 + lambda_i)."""
    return case.p[i] / sum(case.rates(i), case.one)


def second_rank(case: Case, i: int) -> Any:
    """Winner i's term of P(R = 2): P_i sum_j [1 / (1 + lambda_i - a_ij) - 1 / (1 + lambda_i)]."""
    rates = case.rates(i)
    full = sum(rates, case.one)
    return case.p[i] * sum((1 / (full - a) - 1 / full for a in rates), case.zero)


def mean_rank(case: Case, i: int) -> Any:
    """Winner i's term of E[R]: P_i (1 + sum_j a_ij / (1 + a_ij))."""
    return case.p[i] * sum((a / (1 + a) for a in case.rates(i)), case.one)


def acceptance(case: Case) -> Any:
    """P(R = 1) from the densities."""
    return sum((event(case, i, frozenset()) for i in range(case.size)), case.zero)


def overlap(case: Case) -> Any:
    """1 - TV = sum min(P, Q)."""
    return sum((q if sign(p - q, case.name) > 0 else p for p, q in zip(case.p, case.q)), case.zero)


def harmonic(case: Case) -> Any:
    """(1 - TV) / (1 + TV)."""
    return overlap(case) / (2 - overlap(case))


Formula = Callable[[Case], Any]
Term = Callable[[Case, int], Any]
Joint = Callable[[Case, int, int], Any]


def E1_law(formula: Joint = winning_time, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """The joint law of (winner, rank) from the densities, by the winning time and by inclusion and exclusion."""
    yield "E1.law: P(Y = i, R = r + 1) = P_i int e^-t PB_i,t(r) dt, and its rational form, for all P, Q > 0"
    for case in _cases(by_ratio, sizes):
        total = case.zero
        for i, rank in itertools.product(range(case.size), range(1, case.size + 1)):
            direct, name = joint(case, i, rank), f"{case.name}, winner {i}, rank {rank}"
            vanishes(direct - formula(case, i, rank), name, P=case.p, Q=case.q)
            vanishes(direct - inclusion_exclusion(case, i, rank), name, P=case.p, Q=case.q)
            total += direct
        vanishes(total - 1, f"{case.name}, total mass", P=case.p, Q=case.q)
        yield f"  {case.name}: {case.size**2} pairs (winner, rank), three forms agree, total mass 1"
    yield _end("E1.law", sizes)


def E1_accept(formula: Term = first_rank, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """P(R = 1), winner by winner."""
    yield "E1.accept: P(R = 1) = sum_i P_i / (1 + lambda_i), for all P, Q > 0"
    yield from _by_winner("E1.accept", lambda c, i: joint(c, i, 1), formula, sizes)


def E1_second(formula: Term = second_rank, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """P(R = 2), winner by winner."""
    yield "E1.second: P(R = 2) = sum_i P_i sum_j [1/(1 + lambda_i - a_ij) - 1/(1 + lambda_i)], for all P, Q > 0"
    yield from _by_winner("E1.second", lambda c, i: joint(c, i, 2), formula, sizes)


def E1_mean(formula: Term = mean_rank, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """E[R], winner by winner."""
    yield "E1.mean: E[R] = 1 + sum_i P_i sum_j a_ij / (1 + a_ij), for all P, Q > 0"

    def mean(c: Case, i: int) -> Any:
        return sum((rank * joint(c, i, rank) for rank in range(1, c.size + 1)), c.zero)

    yield from _by_winner("E1.mean", mean, formula, sizes)


def E1_two(formula: Formula = overlap, sizes: tuple[int, ...] = (2,)) -> Iterator[str]:
    """P(R = 1) at V = 2."""
    yield "E1.two: V = 2: P(R = 1) = 1 - TV, for all P, Q > 0"
    for case in _cases(by_threshold, sizes):
        vanishes(acceptance(case) - formula(case), case.name, P=case.p, Q=case.q)
        yield f"  {case.name}: identity"
    yield _end("E1.two", sizes)


def E1_lower(formula: Formula = harmonic, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """The lower bound on P(R = 1)."""
    yield "E1.lower: P(R = 1) >= (1 - TV) / (1 + TV), for all P, Q > 0"
    yield from _ordered("E1.lower", lambda c: acceptance(c) - formula(c), sizes)


def E1_upper(formula: Formula = overlap, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """The upper bound on P(R = 1)."""
    yield "E1.upper: P(R = 1) <= 1 - TV, for all P, Q > 0"
    yield from _ordered("E1.upper", lambda c: formula(c) - acceptance(c), sizes)


def _by_winner(claim: str, direct: Term, formula: Term, sizes: tuple[int, ...]) -> Iterator[str]:
    for case in _cases(by_ratio, sizes):
        for i in range(case.size):
            vanishes(direct(case, i) - formula(case, i), f"{case.name}, winner {i}", P=case.p, Q=case.q)
        yield f"  {case.name}: an identity for each winner"
    yield _end(claim, sizes)


def _ordered(claim: str, room: Formula, sizes: tuple[int, ...]) -> Iterator[str]:
    """`room` >= 0 in every case."""
    for case in _cases(by_threshold, sizes):
        value = room(case)
        at_least_zero(value, case.name, P=case.p, Q=case.q)
        terms = 0 if value == 0 else len(value.numer.coeffs()) + len(value.denom.coeffs())
        yield f"  {case.name}: the difference has {terms} coefficients, none of them negative"
    yield _end(claim, sizes)


def _cases(cases: Any, sizes: tuple[int, ...]) -> Iterator[Case]:
    for size in sizes:
        yield from cases(size)


def _end(claim: str, sizes: tuple[int, ...]) -> str:
    return f"  {claim} is proved for V in {{{', '.join(map(str, sizes))}}}. QED"


def _integral(terms: list[tuple[Any, Any]], case: Case) -> Any:
    """The integral over x >= 0 of sum c exp(-s x): sum c / s, each s > 0."""
    if any(sign(rate, case.name) <= 0 for rate, _ in terms):
        raise ArithmeticError(f"{case.name}: an exponential does not decay")
    return sum((c / rate for rate, c in terms), case.zero)
