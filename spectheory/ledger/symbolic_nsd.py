"""N1, N2, N3 for all laws p, q of up to four tokens and every set N that a nucleus can be.

Tokens are split by sign: G where q >= p, L where p > q. On G write p = a, q = a + W g; on L write q = b, p = b + C w, with
a, g, b >= 0, w > 0, C = sum g, W = sum w. The excess W g and the deficit C w then have the same sum D = C W, so every
pair of laws in the pattern is of this form up to a common factor S = sum p = sum q, which is kept instead of 1: all
sides of the claims scale with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .symbolic import numbered, rational_functions, sign, vanishes

SIZES = (1, 2, 3, 4)


@dataclass(frozen=True)
class Case:
    """One sign pattern and one set N: laws `p`, `q` (V,) of mass `one`, positive parts `excess` (q - p)_+, `deficit`

    (p - q)_+, distance `tv` = D, all rational functions of `gens`, which are >= 0; N as a set of indices.
    """

    name: str
    gens: tuple[Any, ...]
    p: list[Any]
    q: list[Any]
    one: Any
    excess: list[Any]
    deficit: list[Any]
    tv: Any
    nucleus: frozenset[int]


Formula = Callable[[Case], Any]


def delta(case: Case) -> Any:
    """The claim of N1: the excess inside N."""
    return sum((case.excess[x] for x in case.nucleus), 0 * case.one)


def rate(case: Case) -> Any:
    """The claim of N2, times S."""
    return case.one - case.tv + delta(case)


def law(case: Case) -> list[Any]:
    """The claim of N3: p + (q - p)_+ 1_N - (Delta / D) (p - q)_+."""
    share = delta(case) / case.tv if case.tv != 0 else 0 * case.one
    inside = [e if x in case.nucleus else 0 * e for x, e in enumerate(case.excess)]
    return [a + e - share * d for a, e, d in zip(case.p, inside, case.deficit)]


def N1(formula: Formula = delta, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """TV(output, p) = Delta: the sign of each output(x) - p(x) is read off its coefficients, which opens | |."""
    yield "N1: TV(output, p) = sum over N of (q - p)_+, for all p, q and every N"

    def step(case: Case) -> None:
        moves = [y - a for y, a in zip(output(case), case.p)]
        distance = sum(sign(m, case.name) * m for m in moves) / 2
        vanishes(distance - formula(case), case.name, p=case.p, q=case.q)

    yield from _by_size("N1", step, sizes)


def N2(formula: Formula = rate, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """beta = 1 - D + Delta."""
    yield "N2: acceptance = 1 - TV(p, q) + Delta, for all p, q and every N"
    yield from _by_size(
        "N2", lambda case: vanishes(sum(kept(case)) - formula(case), case.name, p=case.p, q=case.q), sizes
    )


def N3(formula: Formula = law, sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """output = p + (q - p)_+ 1_N - (Delta / D) (p - q)_+."""
    yield "N3: output = p + (q - p)_+ 1_N - (Delta / D) (p - q)_+, for all p, q and every N"

    def step(case: Case) -> None:
        for x, (y, claimed) in enumerate(zip(output(case), formula(case))):
            vanishes(y - claimed, f"{case.name}, token {x}", p=case.p, q=case.q)

    yield from _by_size("N3", step, sizes)


def kept(case: Case) -> list[Any]:
    """q A from the rule's definition: A = 1 on N and where q < p, else p / q (where q = 0 nothing is drafted: p = 0)."""
    accept = [
        0 * p + 1 if x in case.nucleus or d != 0 else p / q
        for x, (p, q, d) in enumerate(zip(case.p, case.q, case.deficit))
    ]
    return [q * a for q, a in zip(case.q, accept)]


def output(case: Case) -> list[Any]:
    """The law that one step emits, from its definition: q A + (1 - beta) r, r = (p - q)_+ / D, or p where D = 0."""
    accepted = kept(case)
    rejection = case.one - sum(accepted)
    r = [d / case.tv if case.tv != 0 else p / case.one for d, p in zip(case.deficit, case.p)]
    return [k + rejection * y for k, y in zip(accepted, r)]


def cases(size: int) -> Iterator[Case]:
    """Every sign pattern that laws can have, with every subset of the tokens as N."""
    for signs in itertools.product("+-", repeat=size):
        if "-" in signs and "+" not in signs:
            continue  # p > q everywhere: impossible, both sum to S
        for kept_in in itertools.product((False, True), repeat=size):
            yield _case(signs, frozenset(x for x in range(size) if kept_in[x]))


def _case(signs: tuple[str, ...], nucleus: frozenset[int]) -> Case:
    size = len(signs)
    gens = rational_functions([*numbered("a", size), *numbered("g", size)])
    base, step = gens[:size], gens[size:]
    zero = 0 * base[0]
    gains = [s if sg == "+" else zero for s, sg in zip(step, signs)]
    losses = [s if sg == "-" else zero for s, sg in zip(step, signs)]
    c, w = sum(gains), sum(losses)  # no losses: no gains either, p = q
    excess, deficit = [w * g for g in gains], [c * x for x in losses]
    p, q = [a + d for a, d in zip(base, deficit)], [a + e for a, e in zip(base, excess)]
    tokens = "{" + ", ".join(map(str, sorted(nucleus))) + "}"
    return Case(
        f"V = {size}, q - p of signs {''.join(signs)}, N = {tokens}",
        gens,
        p,
        q,
        sum(p),
        excess,
        deficit,
        c * w,
        nucleus,
    )


def _by_size(claim: str, step: Callable[[Case], None], sizes: tuple[int, ...]) -> Iterator[str]:
    """Run `step` on every case, one line of log a sign pattern."""
    total = 0
    for size in sizes:
        for signs, group in itertools.groupby(cases(size), key=lambda case: case.name.partition(", N")[0]):
            tried = list(group)
            for case in tried:
                step(case)
            total += len(tried)
            yield f"  {signs}: {len(tried)} sets N, an identity in each"
    yield f"  {claim} is proved for V in {{{', '.join(map(str, sizes))}}}: {total} cases. QED"
