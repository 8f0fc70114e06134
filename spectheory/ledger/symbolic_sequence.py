"""Q1 for two tokens, horizons up to three, every block size, every token rule and every model.

Along one sequence a model gives one context a position, so the laws p_t, q_t, the acceptances A_t and the residuals r_t of
T positions are free parameters: p_t(0), q_t(0), A_t(0), A_t(1), r_t(0). The claim's product of matrices over (accepted
drafts, token) is compared with the engine told block by block: draft K tokens, keep the accepted prefix, then a residual
or the bonus token, and start over; what is drafted past the horizon is summed out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .symbolic import rational_functions, vanishes

LENGTHS = (1, 2, 3)


@dataclass(frozen=True)
class Position:
    """What one context holds, each over the two tokens: target `p`, draft `q`, `accept`, `residual`."""

    p: tuple[Any, Any]
    q: tuple[Any, Any]
    accept: tuple[Any, Any]
    residual: tuple[Any, Any]

    @property
    def rejection(self) -> Any:
        """1 - beta, as the engine meets it: some token is drafted and not accepted."""
        return sum(q * (1 - a) for q, a in zip(self.q, self.accept))


Law = Callable[[Sequence[Position], Sequence[int], int], Any]


def matrix_product(positions: Sequence[Position], tokens: Sequence[int], block: int) -> Any:
    """The claim Q1: from j < K token x goes to j + 1 with q A and to 0 with (1 - beta) r, from K to 0 with p."""
    one = positions[0].p[0].field.one
    row = [one] + [0 * one] * block
    for at, x in zip(positions, tokens):
        beta = at.q[0] * at.accept[0] + at.q[1] * at.accept[1]
        after = [sum(row[:block], 0 * one) * (1 - beta) * at.residual[x] + row[block] * at.p[x]]
        row = after + [w * at.q[x] * at.accept[x] for w in row[:block]]
    return sum(row)


def block_by_block(positions: Sequence[Position], tokens: Sequence[int], block: int) -> Any:
    """P(the engine writes `tokens`), as a renewal over blocks."""
    one = positions[0].p[0].field.one

    def rest(t: int) -> Any:
        total, accepted = 0 * one, one  # accepted: the first a drafts of this block are the tokens and pass
        for a in range(block + 1):
            if t + a == len(tokens):
                return total + accepted  # the horizon ends inside the block
            at, x = positions[t + a], tokens[t + a]
            correction = at.p[x] if a == block else at.rejection * at.residual[x]
            total += accepted * correction * rest(t + a + 1)
            accepted *= at.q[x] * at.accept[x]
        return total

    return rest(0)


def target_law(positions: Sequence[Position], tokens: Sequence[int], block: int) -> Any:
    """The claim Q1.standard: the product of the target's probabilities, whatever the block size."""
    return math.prod(at.p[x] for at, x in zip(positions, tokens))


def any_rule(length: int) -> list[Position]:
    """Positions of an arbitrary model and rule."""
    gens = rational_functions([f"{name}{t + 1}" for t in range(length) for name in ("p", "q", "a", "b", "r")])
    rows = [gens[5 * t : 5 * t + 5] for t in range(length)]
    return [Position((p, 1 - p), (q, 1 - q), (a, b), (r, 1 - r)) for p, q, a, b, r in rows]


def standard_rule(pattern: Sequence[str]) -> list[Position]:
    """Positions under the standard rule: token 0 or 1 is over-drafted, or p = q, by `pattern`."""
    gens = rational_functions([f"{name}{t + 1}" for t in range(len(pattern)) for name in ("x", "d")])
    out = []
    for t, over in enumerate(pattern):
        low, gap = gens[2 * t : 2 * t + 2]  # the over-drafted token has target mass low, draft mass low + gap
        one, zero = low.field.one, low.field.zero
        gap = zero if over == "=" else gap
        p, q = (low, one - low), (low + gap, one - low - gap)
        accept = (low / (low + gap), one)  # min(1, p / q)
        residual = (zero, one) if over != "=" else p  # (p - q)_+ / D, or p where D = 0
        order = (1, 0) if over == "1" else (0, 1)
        out.append(Position(*(tuple(law[i] for i in order) for law in (p, q, accept, residual))))
    return out


def Q1(formula: Law = matrix_product, lengths: tuple[int, ...] = LENGTHS) -> Iterator[str]:
    """The matrix product is the engine's law, for every rule."""
    yield "Q1: the product of (K + 1) x (K + 1) matrices is the engine's law, V = 2, every model and token rule"
    for length in lengths:
        positions = any_rule(length)
        for at in positions:
            one_step = sum(q * a for q, a in zip(at.q, at.accept)) + at.rejection
            vanishes(one_step - 1, f"T = {length}: the step's total mass")
        for block in range(1, length + 1):
            for tokens in itertools.product((0, 1), repeat=length):
                gap = block_by_block(positions, tokens, block) - formula(positions, tokens, block)
                vanishes(gap, f"T = {length}, K = {block}, tokens {tokens}")
            yield f"  T = {length}, K = {block}: {2**length} sequences, an identity in {5 * length} parameters each"
    yield _end("Q1", lengths)


def Q1_standard(formula: Law = target_law, lengths: tuple[int, ...] = LENGTHS) -> Iterator[str]:
    """The standard rule writes the target's law."""
    yield "Q1.standard: the standard rule gives the target's law exactly, V = 2, every model, every block size"
    for length in lengths:
        for block in range(1, length + 1):
            for pattern in itertools.product("01=", repeat=length):
                positions = standard_rule(pattern)
                for tokens in itertools.product((0, 1), repeat=length):
                    gap = block_by_block(positions, tokens, block) - formula(positions, tokens, block)
                    vanishes(gap, f"T = {length}, K = {block}, over-drafted {pattern}, tokens {tokens}")
            yield f"  T = {length}, K = {block}: {3**length} sign patterns x {2**length} sequences, an identity in each"
    yield _end("Q1.standard", lengths)


def _end(claim: str, lengths: tuple[int, ...]) -> str:
    return f"  {claim} is proved for V = 2, T in {{{', '.join(map(str, lengths))}}} and every K (K > T is K = T). QED"
